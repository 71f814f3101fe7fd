// Times in the language and time zone of the browser, with the exact UTC time as tooltip and machine-readable value.
const format = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

export function Time({ at, none = '–' }: { at: string | null | undefined; none?: string }) {
  if (!at) return <>{none}</>;
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return <>{at}</>;
  return (
    <time dateTime={at} title={at}>
      {format.format(date)}
    </time>
  );
}
