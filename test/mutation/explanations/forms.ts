// The mutants that survive in the form service, and why they do no harm.
import type { Explanation } from './explanation.ts';

export const forms: readonly Explanation[] = [
  {
    file: 'src/forms/codes/code.ts',
    text: "const form = BigInt.asIntN(64, BigInt(`0x${formId.replaceAll('-', '').slice(-16)}`));",
    changes: [["formId.replaceAll('-', '').slice(-16)", "formId.replaceAll('-', '')"]],
    kind: 'equivalent',
    why: 'only the last 64 bits of the number are used.',
  },
  {
    file: 'src/forms/codes/code.ts',
    text: "const form = BigInt.asIntN(64, BigInt(`0x${formId.replaceAll('-', '').slice(-16)}`));",
    changes: [['-16', '+16']],
    kind: 'equivalent',
    why: 'a UUID has 32 digits, so the last 16 follow the first 16.',
  },
  {
    file: 'src/forms/forms/access.ts',
    text: 'const limit = rateLimit(limiter, ({ locals: { caller } }) => `${caller?.issuer}\\0${caller?.subject}`);',
    changes: [
      ['caller?.issuer', 'caller.issuer'],
      ['caller?.subject', 'caller.subject'],
    ],
    kind: 'equivalent',
    why: 'the guard counts only requests whose caller is known; the check satisfies the type checker.',
  },
  {
    file: 'src/forms/registers/policy.ts',
    text: "const named = typeof tenantId === 'string' ? await tenants.byId(tenantId) : undefined;",
    changes: [["typeof tenantId === 'string'", 'true']],
    kind: 'second barrier',
    why: 'a missing or repeated parameter is undefined or a list, which is the id of no tenant.',
  },
  {
    file: 'src/forms/expiry/retention.ts',
    text: 'for (let start = 0; start < keys.length; start += width)',
    changes: [['start < keys.length', 'start <= keys.length']],
    kind: 'equivalent',
    why: 'one more round reads no keys.',
  },
  {
    file: 'src/forms/expiry/dates.ts',
    text: 'let defaults = { read: Number.NEGATIVE_INFINITY, retention: Promise.resolve(initial) };',
    changes: [['{ read: Number.NEGATIVE_INFINITY, retention: Promise.resolve(initial) }', '{}']],
    kind: 'equivalent',
    why: 'without a time of the last read, the comparison is false as well, so the periods are read.',
  },
  {
    file: 'src/forms/codes/code.ts',
    text: 'return form < address ? [String(form), String(address)] : [String(address), String(form)];',
    changes: [['form < address', 'form <= address']],
    kind: 'equivalent',
    why: 'the order of equal numbers is the same.',
  },
  {
    file: 'src/forms/codes/store.ts',
    text: 'if ((rows[0]?.wrong ?? 0) >= wrongLimit)',
    changes: [['rows[0]?.wrong', 'rows[0].wrong']],
    kind: 'equivalent',
    why: 'a count always returns a row; the check satisfies the type checker.',
  },
  {
    file: 'src/forms/codes/verification.ts',
    text: "throw tooMany('A code was sent a moment ago, or five were in the last hour.', reservation.waitMs);",
    changes: [["'A code was sent a moment ago, or five were in the last hour.'", '""']],
    kind: 'text for people',
    why: 'the detail of a problem.',
  },
  {
    file: 'src/forms/codes/verification.ts',
    text: "return tooMany('Too many wrong codes were tried. No code of this form works until the hour is over.', waitMs);",
    changes: [["'Too many wrong codes were tried. No code of this form works until the hour is over.'", '""']],
    kind: 'text for people',
    why: 'the detail of a problem.',
  },
  {
    file: 'src/forms/expiry/store.ts',
    text: 'return rows[0]?.count ?? 0;',
    changes: [['rows[0]?.count', 'rows[0].count']],
    kind: 'equivalent',
    why: 'a count always returns a row; the check satisfies the type checker.',
  },
  {
    file: 'src/forms/expiry/store.ts',
    text: 'return rows[0]?.moment ?? undefined;',
    changes: [['rows[0]?.moment', 'rows[0].moment']],
    kind: 'equivalent',
    why: 'a minimum always returns a row; the check satisfies the type checker.',
  },
  {
    file: 'src/forms/expiry/store.ts',
    text: "const { position = 0, at = '', id = '', ...counts } = row ?? {};",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'without a row, the scan has ended, and the position is not used.',
  },
];
