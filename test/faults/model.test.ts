// Tests how the model of `npm run test:faults` judges notices.
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Message } from '../../dev/mailbox/message.ts';
import { createOutboxDatabase } from '../support/outbox.ts';
import { findUnnotifiable, judgeNotices } from './model.ts';
import type { Application } from './users/applications.ts';

const address = 'ana@example.org';
const subjects = {
  created: 'Your Permit draft is saved',
  submitted: 'We received your Permit',
  deleted: 'Your Permit is deleted',
};
const application: Application = {
  ...{ address, formId: 'form', possible: [{}], begun: undefined },
  done: ['created', 'submitted', 'deleted'],
};

/** Judges an application whose applicant got notices of these events, in this order. */
function judge(events: (keyof typeof subjects)[], unnotifiable: string[] = []) {
  // The mailbox has the newest message first.
  const messages = events.map((event) => ({ to: address, subject: subjects[event] }) as Message).toReversed();
  return judgeNotices([application], { messages: () => messages }, new Set(unnotifiable));
}

describe('the notices of an application', () => {
  it('are right if there is one of each event, in order, and perhaps further copies', () => {
    expect(judge(['created', 'submitted', 'deleted'])).toEqual({ problems: [], notices: 3, repeated: 0 });
    expect(judge(['created', 'submitted', 'created', 'deleted'])).toEqual({ problems: [], notices: 4, repeated: 1 });
  });

  it('are wrong if one is missing or too early', () => {
    expect(judge(['created', 'deleted']).problems).toEqual([
      'ana@example.org got no notice that the form was submitted (created, submitted, deleted)',
    ]);
    expect(judge([]).problems).toHaveLength(3);
    expect(judge(['submitted', 'created', 'deleted']).problems).toEqual([
      expect.stringContaining('the notices to ana@example.org are out of order'),
    ]);
    expect(judge(['deleted', 'created']).problems).toContainEqual(expect.stringContaining('out of order'));
  });

  it('may be missing, but not out of order, if the form was deleted before its applicant was subscribed', () => {
    expect(judge([], ['form']).problems).toEqual([]);
    expect(judge(['created', 'deleted'], ['form']).problems).toEqual([]);
    expect(judge(['deleted', 'created'], ['form']).problems).toHaveLength(1);
    expect(judge([], ['another form']).problems).toHaveLength(3);
  });
});

it('a form was deleted before its applicant was subscribed if its form-deleted names no subscriber', async () => {
  const database = await createOutboxDatabase();
  onTestFinished(() => database.close());
  const add = async (kind: 'form-deleted' | 'form-submitted', facts: Record<string, unknown>) => {
    const form = await database.addForm();
    await database.addRow(form, kind, { facts });
    return form;
  };
  const form = await add('form-deleted', {});
  await add('form-deleted', { subscriberId: 'subscriber' });
  await add('form-submitted', {});
  expect(await findUnnotifiable(database.url)).toEqual(new Set([form]));
});
