// Pages that explain why there is nothing to fill in.
import { textsOf } from '../texts/texts.ts';
import { type FrameProps, Page } from './frame.tsx';
import { dateText } from './problem-text.ts';

export type Message =
  | { kind: 'home' | 'unknown' | 'failed' | 'gone' | 'deleted' | 'left' | 'finished' }
  | { kind: 'locked'; deleteOn?: string | null | undefined }
  | { kind: 'submitted'; number?: string | undefined; submitted?: string | null | undefined };

interface MessageProps {
  frame: FrameProps;
  message: Message;
  /** Shows the page on which a form begins. */
  start?(): void;
  /** Repeats what failed. By default, the button loads the page again. */
  retry?(): void;
}

export function MessagePage({ frame, message, start, retry }: MessageProps) {
  const texts = textsOf(frame.language);
  const { title, lines } = contentOf(message, texts);
  const canStart = start && ['gone', 'deleted', 'left', 'finished', 'submitted'].includes(message.kind);
  return (
    <Page frame={frame} title={title} pageKey={message.kind}>
      {lines.map((line) => (
        <p key={line}>{line}</p>
      ))}
      <div class="buttons">
        {message.kind === 'failed' && (
          <button type="button" onClick={retry ?? (() => location.reload())}>
            {retry ? texts.saved.retry : texts.states.reload}
          </button>
        )}
        {canStart && (
          <button type="button" class="quiet" onClick={start}>
            {texts.states.startNew}
          </button>
        )}
      </div>
    </Page>
  );
}

function contentOf(message: Message, { states, deletion, leave, receipt, locale }: ReturnType<typeof textsOf>) {
  switch (message.kind) {
    case 'home':
      return { title: states.home, lines: [states.homeText] };
    case 'unknown':
      return { title: states.unknown, lines: [states.unknownText] };
    case 'failed':
      return { title: states.failed, lines: [states.failedText] };
    case 'gone':
      return { title: states.gone, lines: [states.goneText] };
    case 'deleted':
      return { title: deletion.done, lines: [deletion.doneText] };
    case 'left':
      return { title: leave.done, lines: [leave.doneText] };
    case 'finished':
      return { title: receipt.done, lines: [receipt.doneText] };
    case 'locked': {
      const until = message.deleteOn ? [states.lockedUntil(dateText(message.deleteOn, locale))] : [];
      return { title: states.locked, lines: [states.lockedText, ...until] };
    }
    case 'submitted': {
      const { submitted, number } = message;
      const sent = submitted ? [receipt.sentOn(dateText(submitted, locale))] : [];
      const known = number === undefined ? [] : [`${receipt.number} ${number}`];
      return { title: states.submitted, lines: [states.submittedText, ...known, ...sent] };
    }
  }
}
