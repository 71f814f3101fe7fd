-- An estimate of when the notification service has handled all events that were sent to it. It handles them one at a time.
CREATE TABLE notice_queue (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  busy_until timestamptz NOT NULL
) WITH (fillfactor = 10); -- Updated with every batch: versions stay on the page and are cleaned up there.

INSERT INTO notice_queue (busy_until) VALUES ('-infinity');

-- Forms that may have more than one subscriber at the notification service. The reconciler looks at each of them once.
CREATE TABLE subscriber_checks (
  form_id uuid PRIMARY KEY REFERENCES forms (id) ON DELETE CASCADE,
  due timestamptz NOT NULL
);

CREATE INDEX subscriber_checks_by_time ON subscriber_checks (due);
