// The saves that the form service has acknowledged. At the end of a run, each form must contain the data of its last
// acknowledged save, or of a later save with an unknown outcome.
export interface Ledger {
  /** Records a new form, which has no data yet. */
  created(formId: string): void;
  /** Records that a save has begun. Until `acknowledged` is called, the form may contain the old or the new data. */
  attempt(formId: string, data: unknown): void;
  acknowledged(formId: string, data: unknown): void;
  /** Each form with the data that it may contain. */
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
