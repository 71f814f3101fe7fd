// The fields of the editor.
import { Checkbox, TextArea, TextField } from '../../elements/fields.tsx';
import type { KeptValue } from '../../session/kept.ts';
import { CodeArea } from './code-area.tsx';
import { type CodeName, codeLabels, type DefinitionDraft, type EditorProblem } from './definition-draft.ts';

interface Props {
  draft: KeptValue<DefinitionDraft>;
  problems: readonly EditorProblem[];
}

type TextName = Exclude<keyof DefinitionDraft, 'anonymousApply' | 'oneFormPerApplicant'>;

function fieldOf({ draft, problems }: Props, name: TextName) {
  return {
    id: `edit-${name}`,
    value: draft.value[name],
    error: problems.find(({ control, severity }) => control === name && severity === 'error')?.text,
    onChange: (text: string) => draft.set({ ...draft.value, [name]: text }),
  };
}

export function Settings(props: Props) {
  const { draft } = props;
  const { value } = draft;
  const roles = { hint: 'Names of roles, separated by commas' };
  return (
    <>
      <TextField {...fieldOf(props, 'name')} label="Name" spellcheck />
      <TextArea {...fieldOf(props, 'description')} label="Description (optional)" rows={2} />
      <Checkbox
        id="edit-anonymousApply"
        label="People without an account may apply"
        checked={value.anonymousApply}
        onChange={(anonymousApply) => draft.set({ ...value, anonymousApply })}
      />
      <Checkbox
        id="edit-oneFormPerApplicant"
        label="One form for each applicant with an account"
        checked={value.oneFormPerApplicant}
        onChange={(oneFormPerApplicant) => draft.set({ ...value, oneFormPerApplicant })}
      />
      <div class="columns">
        <TextField {...fieldOf(props, 'applicantRoles')} {...roles} label="Roles of applicants" />
        <TextField {...fieldOf(props, 'clerkRoles')} {...roles} label="Roles of clerks" />
        <TextField {...fieldOf(props, 'assessorRoles')} {...roles} label="Roles of assessors" />
      </div>
      <Retention {...props} />
    </>
  );
}

function Retention(props: Props) {
  return (
    <fieldset class="columns">
      <legend>Retention of drafts: durations such as P15D or PT12H, empty for the default</legend>
      <TextField {...fieldOf(props, 'lockAfter')} label="Lock after" hint="without access" />
      <TextField {...fieldOf(props, 'warnBefore')} label="Warn before" hint="the lock" />
      <TextField {...fieldOf(props, 'deleteAfter')} label="Delete after" hint="the lock" />
    </fieldset>
  );
}

export function Schemas(props: Props) {
  const code = (name: CodeName, hint: string) => {
    const { id, value, onChange } = fieldOf(props, name);
    const problems = props.problems.filter(({ control }) => control === name);
    return (
      <>
        <CodeArea id={id} label={codeLabels[name]} hint={hint} value={value} problems={problems} onChange={onChange} />
        <button type="button" class="button quiet" onClick={() => onChange(formatted(value))}>
          Format<span class="hidden"> {codeLabels[name]}</span>
        </button>
      </>
    );
  };
  return (
    <>
      {code('dataSchema', 'JSON Schema of the form data')}
      {code('uiSchema', 'JSON Forms UI schema: order, pages, labels and rules of the questions')}
      <details>
        <summary>Other members</summary>
        {code('others', 'All further members of the definition, as one JSON object')}
      </details>
    </>
  );
}

/** Formats a JSON text. Returns the text unchanged if it is not JSON. */
function formatted(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
