-- The subscriber up to which an event is routed: {typeId, subscriberId}. Null if it has not been routed to a whole page.
ALTER TABLE events ADD COLUMN routed_to jsonb;
