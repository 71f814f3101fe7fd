// Lists the references from form definitions to registers.
import { Table } from '../elements/table.tsx';
import { addressOfPage } from '../location.ts';
import type { FoundReferences } from './register.ts';

interface Props {
  found: FoundReferences;
  tenant: string;
  /** The text if a complete search has found nothing. */
  empty: string;
}

export function References({ found: { results, truncated }, tenant, empty }: Props) {
  return (
    <>
      {truncated && (
        <p class="note">
          Not all form definitions could be searched, because they have too many references. There may be further ones.
        </p>
      )}
      <Table
        caption="References"
        hidesCaption
        empty={truncated ? 'The definitions that were searched have no such reference.' : empty}
        columns={['Definition', 'Register', 'Place in the definition']}
        rows={results.map(({ definitionId, definitionName, register, pointer }) => ({
          key: `${definitionId} ${pointer}`,
          cells: [
            <a key="definition" href={addressOfPage(tenant, ['definitions', definitionId])}>
              {definitionName || definitionId}
            </a>,
            register,
            <code key="pointer">{pointer}</code>,
          ],
        }))}
      />
    </>
  );
}
