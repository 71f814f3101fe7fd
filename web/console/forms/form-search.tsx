// The filter above the list of forms.
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { ApiProblem } from '../api/problem.ts';
import { ErrorSummary } from '../elements/error-summary.tsx';
import { errorOf, type FieldError } from '../elements/field-error.ts';
import { Select, TextField } from '../elements/fields.tsx';
import { type DefinitionList, type DefinitionName, statuses } from './form.ts';
import { type Filter, filterOf } from './form-filter.ts';

interface Props {
  filter: Filter;
  address: string;
  /** Undefined until they are loaded. */
  definitions: DefinitionList | undefined;
  problem: ApiProblem | undefined;
  onSearch(filter: Filter, address: string): void;
}

const empty = filterOf(new URLSearchParams());

export function FormSearch({ filter, address, definitions, problem, onSearch }: Props) {
  const [draft, setDraft] = useState(filter);
  // The buttons Back and Forward of the browser change the filter.
  useEffect(() => setDraft(filter), [JSON.stringify(filter)]);
  const [typed, setTyped] = useState(address);
  const change = (name: keyof Filter) => (value: string) => setDraft({ ...draft, [name]: value });
  const errors = useMemo(() => errorsOf(problem), [problem]);
  const submit = (event: Event) => {
    event.preventDefault();
    onSearch({ ...draft, definition: draft.definition.trim() }, typed.trim());
  };
  const clear = () => {
    setTyped('');
    setDraft(empty);
    onSearch(empty, '');
  };
  return (
    <search>
      <form class="filter" onSubmit={submit} noValidate>
        <ErrorSummary errors={errors} />
        <TextField
          id="address"
          type="search"
          label="Applicant’s address"
          hint="The whole email address or telephone number. It does not appear in any URL."
          error={errorOf(errors, 'address')}
          value={typed}
          onChange={setTyped}
        />
        <div class="columns">
          <DefinitionChoice definitions={definitions} value={draft.definition} onChange={change('definition')} />
          <Select
            id="status"
            label="Status"
            value={draft.status}
            onChange={change('status')}
            options={[['', 'Any'], ...statuses.map((name) => [name, capitalised(name)] as const)]}
          />
          <Select
            id="anonymous"
            label="Applicant"
            value={draft.anonymous}
            onChange={change('anonymous')}
            options={[
              ['', 'Any'],
              ['true', 'Without an account'],
              ['false', 'With an account'],
            ]}
          />
        </div>
        <MoreFilters draft={draft} change={change} />
        <div class="actions">
          <button type="submit" class="button">
            Search
          </button>
          <button type="button" class="button quiet" onClick={clear}>
            Clear
          </button>
        </div>
      </form>
    </search>
  );
}

interface ChoiceProps {
  definitions: DefinitionList | undefined;
  value: string;
  onChange(value: string): void;
}

/** A menu; if the tenant has more definitions than the list, an input for the id instead. */
function DefinitionChoice({ definitions, value, onChange }: ChoiceProps) {
  const parts = { id: 'definition', label: 'Definition', value, onChange };
  if (definitions?.truncated) return <TextField {...parts} label="Id of the definition" />;
  return <Select {...parts} options={[['', 'Any'], ...withChosen(definitions?.results ?? [], value)]} />;
}

function errorsOf(problem: ApiProblem | undefined): FieldError[] {
  const isRefused = problem?.errors.some(({ pointer }) => pointer === '/headers/x-applicant-address');
  return isRefused ? [{ id: 'address', text: 'Enter one complete email address or telephone number' }] : [];
}

interface MoreProps {
  draft: Filter;
  change(name: keyof Filter): (value: string) => void;
}

function MoreFilters({ draft, change }: MoreProps) {
  return (
    <div class="columns">
      <TextField
        id="created-after"
        type="date"
        label="Created on or after"
        value={draft.createdAfter}
        onChange={change('createdAfter')}
      />
      <TextField
        id="created-before"
        type="date"
        label="Created before"
        value={draft.createdBefore}
        onChange={change('createdBefore')}
      />
      <Select
        id="sort"
        label="Order"
        value={draft.sort}
        onChange={change('sort')}
        options={[
          ['', 'Newest first'],
          ['created asc', 'Oldest first'],
          ['status asc', 'By status'],
        ]}
      />
    </div>
  );
}

/** Adds the chosen definition to the options if it no longer exists, because its forms may still exist. */
function withChosen(definitions: readonly DefinitionName[], chosen: string) {
  const options = definitions.map(({ id, name }) => [id, name === id ? id : `${name} (${id})`] as const);
  return chosen === '' || options.some(([id]) => id === chosen) ? options : [...options, [chosen, chosen] as const];
}

const capitalised = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
