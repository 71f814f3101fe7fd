import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { captureLog } from '../../../test/support/captured-log.ts';
import type { Template } from './notification-type.ts';
import { createNoticeRenderer, templateFault } from './template.ts';

const render = createNoticeRenderer();
const data = {
  tenant: { id: 'urn:t', name: 'Blue River' },
  event: {
    payload: { deleteOn: '2026-09-04T17:00:00Z', name: '<script>alert(1)</script>' },
    context: { formId: '5d0c' },
  },
  subscriber: { addressAs: 'Ana "A" <ana>' },
  managementUrl: 'https://subscriptions.example.org',
};
const template = (changes: Partial<Template>): Template => ({ subject: 'S', body: 'B', ...changes });

describe('a notice', () => {
  it('is rendered with tenant, event, subscriber, managementUrl, title and subtitle', () => {
    const body =
      '{{tenant.name}}|{{event.context.formId}}|{{subscriber.addressAs}}|{{managementUrl}}|{{title}}|{{subtitle}}';
    const { subject, text } = render(
      template({ subject: '{{tenant.name}}', title: 'T {{tenant.name}}', subtitle: 'U', body }),
      data,
    );
    expect(subject).toBe('Blue River');
    expect(text).toBe(
      'T Blue River\n\nU\n\nBlue River|5d0c|Ana "A" <ana>|https://subscriptions.example.org|T Blue River|U',
    );
  });

  it('escapes every value in the HTML, triple braces and ampersands included', () => {
    const body =
      '<p>{{event.payload.name}}</p>{{{event.payload.name}}}{{&event.payload.name}}{{#with event}}{{{payload.name}}}{{/with}}';
    const { html } = render(template({ title: '{{event.payload.name}}', body }), data);
    expect(html).not.toContain('<script>');
    expect(html.match(/&lt;script&gt;/g)).toHaveLength(5);
    expect(html).toContain('<p>');
  });

  it('has a text part without the markup of the template, in which links keep their address', () => {
    const body =
      '<p>Hi,</p><p>see <a class="x" href="https://example.org/?a={{event.context.formId}}">your form</a><br>or <a href="{{managementUrl}}">{{managementUrl}}</a></p>';
    const { text } = render(template({ body }), data);
    expect(text).toBe('Hi,\nsee your form (https://example.org/?a=5d0c)\nor https://subscriptions.example.org');
  });

  it.each([
    [`<a href='{{managementUrl}}'>Continue</a>`, 'Continue (https://subscriptions.example.org)'],
    ['<A title="href=x" HREF = {{managementUrl}}>Continue</A>', 'Continue (https://subscriptions.example.org)'],
    [
      '{{#if french}}<a href="https://x/fr">{{else}}<a href="https://x/en">{{/if}}My form</a>',
      'My form (https://x/en)',
    ],
    ['<p class="{{#if late}}red">Late{{else}}ok">Fine{{/if}}</p>', 'Fine'],
    ['<a href="/?a=1&amp;b={{and}}">A &amp; {{and}}</a>', 'A & B&C="\'` (/?a=1&b=B&C="\'`)'],
    [
      '<p title="a > b">1 < 2<!-- <a href="x">no</a> --> &#233;&#xe9;&nbsp;&eacute;&#9999999;</p>',
      '1 < 2 éé\u00a0&eacute;&#9999999;',
    ],
    [`<p it's>it's <a href="x"><img src="y"></a>`, "it's x"],
    ['Fine <b', 'Fine <b'],
  ])('has a text part that says the same as the HTML of %s', (body, expected) => {
    expect(render(template({ body }), { ...data, ...{ and: 'B&C="\'`' } }).text).toBe(expected);
  });

  it.each([['<a'], ['<a '], ['<a "'], ['<a href="'], ['<!--'], ['<p x'], ['<a = '], ['<a href=x>'], ['&#']])(
    'with the longest text has a text part soon: %s',
    (part) => {
      const began = process.cpuUsage();
      const body = `{{#each lines}}${part}{{/each}}`;
      render(template({ body }), { ...data, ...{ lines: Array(Math.floor(250_000 / part.length)).fill(0) } });
      const { user, system } = process.cpuUsage(began);
      expect((user + system) / 1_000).toBeLessThan(2_000);
    },
  );

  it('keeps what looks like markup in a value of the text part', () => {
    expect(render(template({ body: '{{event.payload.name}}' }), data).text).toBe('<script>alert(1)</script>');
  });

  it('has a subject of one line', () => {
    const twisted = { ...data, subscriber: { addressAs: 'a\r\nBcc: x@example.org' } };
    expect(render(template({ subject: 'Hi {{subscriber.addressAs}}' }), twisted).subject).toBe(
      'Hi a Bcc: x@example.org',
    );
  });
});

describe('a template', () => {
  it('cannot read prototypes and constructors', () => {
    const body =
      '[{{event.constructor}}{{event.constructor.name}}{{event.__proto__}}{{event.toString}}{{#with event}}{{constructor}}{{/with}}{{lookup event "constructor"}}]';
    expect(render(template({ body }), data).text).toBe('[]');
  });

  it.each([
    '{{#lookup event.payload "name"}}{{/lookup}}',
    '{{^lookup event.payload "name"}}{{/lookup}}',
    '{{#if true}}{{#lookup.x event.payload "name"}}{{/lookup.x}}{{/if}}',
    '{{#this.lookup event.payload "name"}}{{/this.lookup}}',
    '{{#[lookup] event.payload "name"}}{{/[lookup]}}',
    '{{#"lookup" event.payload "name"}}{{/"lookup"}}',
    '{{#formatDate event.payload.deleteOn format=event.payload.name}}{{/formatDate}}',
  ])('cannot insert form data without escaping it, by a helper that is called as a block: %s', (body) => {
    expect(() => render(template({ body }), data)).toThrow(/as a block/);
    expect(templateFault(body)).toMatch(/as a block/);
  });

  it('may use the blocks if, unless, each and with, and sections of data', () => {
    const body =
      '{{#if event}}a{{/if}}{{#unless x}}b{{/unless}}{{#with event.payload}}{{#name}}c{{/name}}{{/with}}{{#each event}}{{/each}}';
    expect(render(template({ body }), data).text).toBe('abc');
    expect(templateFault(body)).toBeUndefined();
  });

  it('cannot write to the console', () => {
    const written = captureLog();
    expect(() => render(template({ body: '{{log subscriber.addressAs}}' }), data)).toThrow();
    expect(written.text()).toBe('');
  });

  it('that is malformed or recurses without end throws an error and does not end the process', () => {
    expect(() => render(template({ body: '{{#if x}}' }), data)).toThrow();
    expect(() => render(template({ body: '{{#*inline "a"}}{{> a}}{{/inline}}{{> a}}' }), data)).toThrow();
  });
});

describe('formatDate', () => {
  const text = (expression: string) => render(template({ body: expression }), data).text;

  it('writes date, time and zone, by default in UTC and Canadian English', () => {
    expect(text('{{formatDate event.payload.deleteOn}}')).toBe('September 4, 2026 at 5:00 p.m. UTC');
    expect(
      text('{{formatDate event.payload.deleteOn locale="fr-CA" timeZone="America/Edmonton" timeStyle="none"}}'),
    ).toBe('4 septembre 2026');
  });

  it('accepts the format of the public platform, unless a style is given', () => {
    expect(text('{{formatDate event.payload.deleteOn format="yyyy-MM-dd HH:mm"}}')).toBe('2026-09-04 17:00');
    expect(
      text('{{formatDate event.payload.deleteOn format="ff ZZZZ" timeZone="America/Edmonton" locale="en-US"}}'),
    ).toBe('Sep 4, 2026, 11:00 AM MDT');
    expect(text('{{formatDate event.payload.deleteOn format="yyyy" timeStyle="none"}}')).toBe('September 4, 2026');
  });

  it('creates one format for equal options, because each format takes memory outside the heap', () => {
    const created = vi.spyOn(Intl, 'DateTimeFormat');
    onTestFinished(() => created.mockRestore());
    text('{{formatDate event.payload.deleteOn locale="de"}}'.repeat(20));
    expect(created).toHaveBeenCalledTimes(1);
  });

  it('renders an invalid date as an empty text', () => {
    expect(text('[{{formatDate event.payload.name}}{{formatDate event.none}}{{formatDate event}}]')).toBe('[]');
  });
});
