// A received message, and its summary in the list.
export interface Message {
  id: string;
  from: string;
  /** The recipients of the envelope, separated by ', '. */
  to: string;
  subject: string;
  text: string;
  html?: string;
  /** ISO 8601 */
  received: string;
}

/** The fields of a message in `GET /mailbox/messages`. */
export function summary({
  id,
  to,
  subject,
  text,
  received,
}: Message): Pick<Message, 'id' | 'to' | 'subject' | 'text' | 'received'> {
  return { id, to, subject, text, received };
}

export function isMessage(value: unknown): value is Message {
  if (!value || typeof value !== 'object') return false;
  const fields = new Map<string, unknown>(Object.entries(value));
  return ['id', 'from', 'to', 'subject', 'text', 'received'].every((name) => typeof fields.get(name) === 'string');
}
