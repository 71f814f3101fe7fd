// What the form service has acknowledged: at the end of a run each form must still hold the data of its last acknowledged
// save, or of one whose outcome its user never learnt.
export interface Ledger {
  /** The form exists, without any data yet. */
  created(formId: string): void;
  /** A save is under way: until `acknowledged`, either data may be found. */
  attempt(formId: string, data: unknown): void;
  acknowledged(formId: string, data: unknown): void;
  /** Each form with the data that it may hold. */
  entries(): [formId: string, possible: unknown[]][];
}

export function createLedger(): Ledger {
  const forms = new Map<string, unknown[]>();
  return {
    created: (formId) => void forms.set(formId, [{}]),
    attempt: (formId, data) => void forms.set(formId, [...(forms.get(formId) ?? []), data]),
    acknowledged: (formId, data) => void forms.set(formId, [data]),
    entries: () => [...forms],
  };
}
