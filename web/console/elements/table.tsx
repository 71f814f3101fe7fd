// A table that scrolls independently of the page on narrow screens. Its first column names the row.

import type { ComponentChildren } from 'preact';
import { ScrollRegion } from './scroll-region.tsx';

interface Props {
  caption: string;
  /** Hides the caption from view, because a heading has the same text. */
  hidesCaption?: boolean;
  columns: readonly string[];
  rows: readonly Row[];
  /** Text that is shown in place of an empty table. */
  empty?: string;
}

export interface Row {
  key: string;
  cells: readonly ComponentChildren[];
}

export function Table({ caption, hidesCaption = false, columns, rows, empty = 'There are none.' }: Props) {
  if (rows.length === 0) return <p>{empty}</p>;
  return (
    <ScrollRegion label={`Table: ${caption}`}>
      <table>
        <caption class={hidesCaption ? 'hidden' : undefined}>{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, cells: [first, ...others] }) => (
            <tr key={key}>
              <th scope="row">{first}</th>
              {others.map((cell, index) => (
                <td key={index}>{cell}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollRegion>
  );
}

/** Names and values, such as the dates of a form. */
export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
