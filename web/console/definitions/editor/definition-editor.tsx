// The editor of a form definition: settings, retention, data schema and UI schema. Marks the position of each problem.

import { useEffect, useRef, useState } from 'preact/hooks';
import { isEqual } from '../../../apply/model/json.ts';
import { ApiProblem } from '../../api/problem.ts';
import { send } from '../../api/send.ts';
import { Curl } from '../../elements/curl.tsx';
import { loadPart } from '../../elements/load-part.ts';
import { Loaded, useLoad } from '../../elements/loaded.tsx';
import { ProblemBox } from '../../elements/problem-box.tsx';
import { Unsaved } from '../../elements/unsaved.tsx';
import { useAction } from '../../elements/use-action.ts';
import { type KeptValue, useKept } from '../../session/kept.ts';
import { locate } from '../configuration.ts';
import { type Definition, type Located, saveRequests } from '../definition.ts';
import { type DefinitionDraft, definitionOf, draftOf, placedProblems, syntaxProblems } from './definition-draft.ts';
import { Schemas, Settings } from './editor-fields.tsx';
import { Problems } from './problems.tsx';
import { useCheck } from './use-check.ts';

interface Props {
  located: Located;
  /** Called with a text for the person after a save, and after changes were discarded. Loads the definition again. */
  onChanged(text: string): void;
}

/** The draft, and `base`, the definition from which it was made. `base` serves to detect concurrent changes. */
interface KeptDraft {
  draft: DefinitionDraft;
  base: string;
}

export function DefinitionEditor({ located, onChanged }: Props) {
  const { id, definition } = located;
  const initial = { draft: draftOf(id, definition), base: JSON.stringify(definition) };
  const kept = useKept<KeptDraft>(`definition ${id}`, `Form definition ${id}`, initial);
  const { draft, base } = kept.value;
  const latest = useRef(draft);
  latest.current = draft;
  const draftValue: KeptValue<DefinitionDraft> = {
    value: draft,
    isKept: kept.isKept,
    set: (next) => kept.set({ draft: next, base }),
    forget: () => kept.forget(initial),
  };
  const syntax = syntaxProblems(draft);
  const next = syntax.length === 0 ? definitionOf(id, draft, definition) : undefined;
  const check = useCheck(next);
  const problems = [...syntax, ...(next ? placedProblems(check.problems, draft) : [])];
  return (
    <section aria-labelledby="editor-title">
      <h2 id="editor-title">Edit</h2>
      {kept.isKept && (
        <Unsaved
          onDiscard={() => {
            kept.forget(initial);
            // Somebody else may have changed the definition since it was loaded.
            onChanged('Your changes were discarded.');
          }}
        />
      )}
      <Settings draft={draftValue} problems={problems} />
      <Schemas draft={draftValue} problems={problems} />
      <Problems problems={problems} check={check} />
      <PreviewOf definition={next} />
      <Save
        located={located}
        next={next}
        base={base}
        problems={problems.length}
        onSaved={(text) => {
          const saved = { draft: latest.current, base: JSON.stringify(next) };
          // Text that was typed during the request is not saved yet.
          if (latest.current === draft) kept.forget(saved);
          else kept.set(saved);
          onChanged(text);
        }}
      />
    </section>
  );
}

/** The preview of the form. The renderers of the form are loaded when the preview is opened. */
function PreviewOf({ definition }: { definition: Definition | undefined }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>Preview as applicants see it</summary>
      {isOpen && (definition ? <LoadedPreview definition={definition} /> : <p>Correct the listed problems first.</p>)}
    </details>
  );
}

function LoadedPreview({ definition }: { definition: Definition }) {
  const load = useLoad('preview', () => loadPart(() => import('./preview.tsx')));
  return <Loaded load={load}>{({ Preview }) => <Preview definition={definition} />}</Loaded>;
}

interface SaveProps {
  located: Located;
  next: Definition | undefined;
  base: string;
  problems: number;
  onSaved(text: string): void;
}

function Save({ located, next, base, problems, onSaved }: SaveProps) {
  const { id, source } = located;
  const action = useAction();
  // A problem such as a concurrent change was about the former base.
  useEffect(() => action.clear(), [base]);
  const requests = next ? saveRequests(id, source, next, JSON.parse(base) as Definition) : [];
  const save = async (overwrites: boolean) => {
    const isSaved = await action.run(async () => {
      if (!next) throw new ApiProblem(400, { detail: 'Correct the listed problems first.' });
      const present = await locate(id);
      // The service may return the members in another order.
      if (!overwrites && !isEqual(present.definition, JSON.parse(base)))
        throw new ApiProblem(412, { detail: 'Somebody has changed this definition since you opened it.' });
      for (const request of saveRequests(id, source, next, present.definition)) await send(request);
    });
    if (isSaved) onSaved(problems === 0 ? 'The definition was saved.' : 'The definition was saved, and has problems.');
  };
  return (
    <div class="action">
      <button type="button" class="button" aria-disabled={action.isBusy} onClick={() => void save(false)}>
        {problems === 0 ? 'Save' : 'Save with these problems'}
      </button>
      {requests.map((request, index) => (
        <Curl
          key={String(index)}
          request={request}
          label={index === 0 ? 'Save as a curl command' : `Save, step ${index + 1}`}
        />
      ))}
      {action.problem && <ProblemBox problem={action.problem} takesFocus />}
      {action.problem?.status === 412 && (
        <button type="button" class="button danger" onClick={() => void save(true)}>
          Replace that change with mine
        </button>
      )}
    </div>
  );
}
