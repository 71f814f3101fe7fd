// The properties of an input: its field or choices, its value, and a function that changes the value.
import type { FieldParts } from '../../shared/field.tsx';
import type { Field } from '../model/fields.ts';
import type { Choice } from '../model/registers.ts';

export interface ControlProps {
  field: Field;
  parts: FieldParts;
  value: unknown;
  set(value: unknown): void;
}

export interface ChoiceProps extends Omit<ControlProps, 'field'> {
  choices: readonly Choice[];
}
