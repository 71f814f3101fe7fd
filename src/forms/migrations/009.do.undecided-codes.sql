-- Attempts whose check may have reached the notification service, without a response. The same code may be tried again
-- and reuses its row, so it counts once. Other codes have rows of their own.

ALTER TABLE code_attempts ADD COLUMN undecided boolean NOT NULL DEFAULT false;
