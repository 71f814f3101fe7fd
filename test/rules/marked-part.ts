// Replaces the generated part of a page that is otherwise written by hand.

/** The lines before and after the generated part. */
export interface Marks {
  begin: string;
  end: string;
}

/** Returns the page with the text between the marks replaced. Throws if the page lacks the marks. */
export function withMarkedPart(page: string, { begin, end }: Marks, text: string): string {
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`The page has no ${begin} … ${end}`);
  return `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`;
}
