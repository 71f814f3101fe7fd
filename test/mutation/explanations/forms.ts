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
    file: 'src/forms/codes/code.ts',
    text: 'return form < address ? [String(form), String(address)] : [String(address), String(form)];',
    changes: [['form < address', 'form <= address']],
    kind: 'equivalent',
    why: 'the order of equal numbers is the same.',
  },
];
