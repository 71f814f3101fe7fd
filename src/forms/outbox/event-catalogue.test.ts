// Checks that the catalogue of events is the only list of event kinds, and that the registration,
// translation and documentation of events are derived from it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { withEventTable } from '../../../test/rules/event-reference.ts';
import { listFiles } from '../../../test/rules/source-files.ts';
import { actions, operations } from '../forms/catalogue.ts';
import { frenchOverride, notificationTypeId, notificationTypeOf } from '../notices/notification-type.ts';
import { frenchTemplates, noticeTemplates } from '../notices/templates.ts';
import { noticeNames } from '../notices/text-parts.ts';
import { english } from '../notices/texts-en.ts';
import { french } from '../notices/texts-fr.ts';
import { registered } from '../registration.ts';
import { type EventEntry, eventKinds, events, eventTypesOf } from './event-catalogue.ts';
import { actor, formId } from './event-fields.ts';

const root = join(import.meta.dirname, '../../..');
const page = readFileSync(join(root, 'docs/notices.md'), 'utf8');

describe('the catalogue of events', () => {
  it('matches the table in docs/notices.md, which npm run docs writes', () => {
    expect(page).toBe(withEventTable(page, events));
  });

  it('is registered at the platform', () => {
    expect(registered.events?.map(({ name }) => name)).toEqual(eventKinds);
    expect(registered.notificationTypes?.[notificationTypeId]?.events).toEqual(notificationTypeOf(events).events);
  });

  it('has every event that an action names', () => {
    const named = Object.values(actions).flatMap(({ event }) => event ?? []);
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((event) => !(event in events))).toEqual([]);
  });

  it('lists only events that a statement writes to the outbox', () => {
    const moved = Object.values(operations).flatMap((operation) => ('move' in operation ? [operation.event] : []));
    const writers = listFiles(root, ['src/forms/forms', 'src/forms/expiry'], '.ts').filter(
      ({ path }) => !path.endsWith('.test.ts') && !path.endsWith('catalogue.ts'),
    );
    // If a statement writes a kind, the kind is among the selected columns or values, or is an argument of the function
    // that builds the statement.
    const isWritten = (kind: string) =>
      writers.some(({ text }) => new RegExp(`(tenant_?id"?,|kind:|[(]\\d,) '${kind}'`, 'i').test(text));
    expect(eventKinds.filter((kind) => !moved.some((event) => event === kind) && !isWritten(kind))).toEqual([]);
  });

  it('has a translation for each notice', () => {
    const missing = noticeNames.flatMap((name) =>
      (['subject', 'heading', 'paragraphs', 'sms'] as const)
        .filter(
          (part) =>
            String(french[name][part]).trim() === '' || isDeepStrictEqual(french[name][part], english[name][part]),
        )
        .map((part) => `texts-fr.ts has no French ${part} of ${name}`),
    );
    expect(missing).toEqual([]);
    const translated = frenchOverride(events)[notificationTypeId]?.events.map(({ name }) => name);
    expect(translated).toEqual(notificationTypeOf(events).events.map(({ name }) => name));
  });

  it('names an event whose notice has no translation', () => {
    const notice = { ...noticeTemplates.created };
    const more = { ...events, 'form-made-up': { ...events['form-created'], notice } };
    expect(() => frenchOverride(more)).toThrow('The notice of form-made-up is not in noticeTemplates');
  });

  it('needs one entry for another event: type, notice, payload and documentation derive from it', () => {
    const entry: EventEntry = {
      description: 'A form was made up.',
      payload: { id: formId, madeUpBy: actor },
      notice: noticeTemplates.created,
      definition: 'unused',
    };
    const more: Record<string, EventEntry> = { ...events, 'form-made-up': entry };
    expect(eventTypesOf(more).at(-1)).toMatchObject({
      name: 'form-made-up',
      payloadSchema: { required: ['id', 'madeUpBy'] },
    });
    expect(notificationTypeOf(more).events.at(-1)).toMatchObject({
      name: 'form-made-up',
      templates: noticeTemplates.created,
    });
    expect(withEventTable(page, more)).toContain('| `form-made-up` | A form was made up. | yes | `id`, `madeUpBy` |');
    expect(frenchOverride(more)[notificationTypeId]?.events.at(-1)).toMatchObject({
      name: 'form-made-up',
      templates: frenchTemplates.created,
    });
  });

  // Other files may name the kinds that they write. A file that names more than three kinds contains a second list.
  it('is the only list of kinds in the code, apart from the operations that send events', () => {
    const named = (text: string) => eventKinds.filter((kind) => text.includes(`'${kind}'`)).length;
    const lists = listFiles(root, ['src', 'reconciler'], '.ts')
      .filter(({ path, text }) => !path.endsWith('.test.ts') && named(text) > 3)
      .map(({ path }) => path);
    expect(lists).toEqual(['src/forms/forms/catalogue.ts', 'src/forms/outbox/event-catalogue.ts']);
  });
});
