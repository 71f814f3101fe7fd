// A message that the mailbox received, and its summary in the list of messages.
export interface Message {
  id: string;
  from: string;
  /** The recipients of the envelope, separated by ', '. */
  to: string;
  subject: string;
  text: string;
  html?: string;
  /** The text of the message as received. Missing in messages that an older version stored. */
  source?: string;
  /** Time at which the mailbox received the message, in ISO 8601. */
  received: string;
}

/** Returns the fields of a message in `GET /mailbox/messages`. */
export function summary({
  id,
  to,
  subject,
  text,
  received,
}: Message): Pick<Message, 'id' | 'to' | 'subject' | 'text' | 'received'> {
  return { id, to, subject, text, received };
}

/** True if each word of the query occurs in the subject, the recipients or the text. The search ignores case. */
export function matches({ subject, to, text }: Message, query: string): boolean {
  const searched = `${subject}\n${to}\n${text}`.toLowerCase();
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => searched.includes(word));
}

export function isMessage(value: unknown): value is Message {
  if (!value || typeof value !== 'object') return false;
  const fields = new Map<string, unknown>(Object.entries(value));
  return ['id', 'from', 'to', 'subject', 'text', 'received'].every((name) => typeof fields.get(name) === 'string');
}
