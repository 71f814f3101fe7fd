// The mutants that survive in the modules that all services share, and why they do no harm.
import type { Explanation } from './explanation.ts';

export const service: readonly Explanation[] = [
  {
    file: 'src/service/http/cookie-header.ts',
    text: 'for (let start = 0, end = 0; start < header.length; start = end + 1) {',
    changes: [['start < header.length', 'start <= header.length']],
    kind: 'equivalent',
    why: 'one more round finds no name in an empty rest.',
  },
  {
    file: 'src/service/keys/key-ring.ts',
    text: "override name = 'KeyRingError';",
    changes: [["'KeyRingError'", '""']],
    kind: 'text for people',
    why: 'the name of the error in logs; programs check its class.',
  },
  {
    file: 'src/service/keys/key-ring.ts',
    text: 'if (error instanceof KeyRingError) return error.message;',
    changes: [['error instanceof KeyRingError', 'true']],
    kind: 'equivalent',
    why: 'reading a key ring throws no other error.',
  },
  {
    file: 'src/service/keys/key-ring.ts',
    text: "const [, id = '', text = ''] = keyPattern.exec(item.trim()) ?? [];",
    changes: [["''", '"Stryker was here!"']],
    kind: 'equivalent',
    why: 'the base64 of a key that did not match is not used: its name is empty.',
  },
  {
    file: 'src/service/keys/key-ring.ts',
    text: "const [, id = '', text = ''] = keyPattern.exec(item.trim()) ?? [];",
    changes: [['[]', '["Stryker was here"]']],
    kind: 'equivalent',
    why: 'a default for a pattern that did not match: its name is still empty.',
  },
  {
    file: 'src/service/keys/key-ring.ts',
    text: "const cipher = createCipheriv('aes-256-gcm', messageKey(key, nonce), nonce.subarray(saltLength), {",
    changes: [['{ authTagLength: tagLength, }', '{}']],
    kind: 'second barrier',
    why: '16 bytes is the default; this version of Node refuses a shorter tag without the option, and a test truncates tags.',
  },
  {
    file: 'src/service/keys/key-ring.ts',
    text: "const text = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final()]);",
    changes: [["'utf8'", '""']],
    kind: 'equivalent',
    why: 'UTF-8 is the default.',
  },
  {
    file: 'src/service/keys/key-ring.ts',
    text: "const decipher = createDecipheriv('aes-256-gcm', messageKey(key, nonce), nonce.subarray(saltLength), {",
    changes: [['{ authTagLength: tagLength, }', '{}']],
    kind: 'second barrier',
    why: '16 bytes is the default; this version of Node refuses a shorter tag without the option, and a test truncates tags.',
  },
  {
    file: 'src/service/keys/key-ring.ts',
    text: "throw new KeyRingError('the text was changed, or sealed for another context', { cause: error });",
    changes: [['{ cause: error }', '{}']],
    kind: 'text for people',
    why: 'the cause is only logged.',
  },
];
