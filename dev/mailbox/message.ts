// A received message, as the mailbox keeps and shows it.
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

/** What `GET /mailbox/messages` tells of a message. */
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
