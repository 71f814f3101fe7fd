// The controls for objects, and for lists whose items can be added and removed.
import { useRef } from 'preact/hooks';
import { focusOn } from '../../shared/error-summary.tsx';
import { GroupedField } from '../../shared/field.tsx';
import { idOf, useForm } from '../form-context.ts';
import { newItem } from '../model/defaults.ts';
import { type Field, itemPlace } from '../model/fields.ts';
import { detailOf } from '../model/questions.ts';
import type { ControlProps } from './control-props.ts';

export function ObjectControl({ field, parts }: ControlProps) {
  const { show } = useForm();
  return (
    <section aria-labelledby={`${parts.id}-title`}>
      <h2 id={`${parts.id}-title`}>{field.label}</h2>
      {parts.hint !== undefined && <p class="hint">{parts.hint}</p>}
      {parts.error !== undefined && <p class="error">{parts.error}</p>}
      {show(detailOf(field, field.place), field.place)}
    </section>
  );
}

export function ListControl({ field, parts, value, set }: ControlProps) {
  const { texts, announce, removeItem } = useForm();
  const addButton = useRef<HTMLButtonElement>(null);
  const items: readonly unknown[] = Array.isArray(value) ? value : [];
  const keys = useItemKeys(items.length);
  const { maxItems } = field.place.schema;
  const isFull = typeof maxItems === 'number' && items.length >= maxItems;
  const add = () => {
    set([...items, newItem(field, items.length)]);
    announce(texts.fields.added(items.length + 1));
    focusOn(`${idOf(field.path)}-item-${items.length}`);
  };
  const remove = (index: number) => {
    keys.splice(index, 1);
    removeItem(field.path, index);
    announce(texts.fields.removed(index + 1));
    addButton.current?.focus();
  };
  return (
    <GroupedField {...parts}>
      {items.length === 0 && <p class="hint">{texts.fields.addNone}</p>}
      {items.map((_item, index) => (
        <Item key={keys[index]} field={field} index={index} remove={() => remove(index)} />
      ))}
      <button type="button" class="quiet" ref={addButton} aria-disabled={isFull} onClick={() => !isFull && add()}>
        {texts.fields.add(field.label)}
      </button>
    </GroupedField>
  );
}

/**
 * Returns a key for each list item. When an item is removed, the caller removes its key, so that the other items keep
 * their controls and the texts that were typed there.
 */
function useItemKeys(count: number): number[] {
  const keys = useRef<number[]>([]).current;
  const made = useRef(0);
  while (keys.length < count) keys.push(made.current++);
  return keys;
}

function Item({ field, index, remove }: { field: Field; index: number; remove(): void }) {
  const { texts, show } = useForm();
  const place = itemPlace(field, index);
  const name = texts.fields.item(field.label, index + 1);
  return (
    <fieldset class="item" id={`${idOf(field.path)}-item-${index}`}>
      <legend>{name}</legend>
      {show(detailOf(field, place), place)}
      <button type="button" class="quiet" onClick={remove}>
        {texts.fields.remove} <span class="visually-hidden">{name}</span>
      </button>
    </fieldset>
  );
}
