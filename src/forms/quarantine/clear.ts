// SQL that removes what is in quarantine of deleted forms. It is part of the statement that deletes them.

/**
 * Common table expressions for a statement in which `gone` holds the deleted forms' ids. Entries go. So do the outbox
 * rows that were quarantined, but for `subscribe`: it is tried again, because the notification service may have a
 * subscriber of the form, and without the form's row the request is another one.
 */
export const clearQuarantineSql = (now: string) => `
cleared AS (
  DELETE FROM quarantine q USING gone WHERE q.form_id = gone.id RETURNING q.form_id
), dropped AS (
  DELETE FROM outbox o USING (SELECT DISTINCT form_id FROM cleared) c
  WHERE o.form_id = c.form_id AND o.not_before = 'infinity' AND coalesce(o.accepted, 'infinity') = 'infinity'
    AND o.kind <> 'subscribe'
), resumed AS (
  UPDATE outbox o SET not_before = ${now}, refusals = 0 FROM (SELECT DISTINCT form_id FROM cleared) c
  WHERE o.form_id = c.form_id AND o.not_before = 'infinity' AND coalesce(o.accepted, 'infinity') = 'infinity'
    AND o.kind = 'subscribe'
)`;
