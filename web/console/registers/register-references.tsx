// Lists the references from form definitions to registers.
import { Table } from '../elements/table.tsx';
import { addressOfPage } from '../location.ts';
import type { Reference } from './register.ts';

interface Props {
  references: readonly Reference[];
  tenant: string;
  empty: string;
}

export function References({ references, tenant, empty }: Props) {
  return (
    <Table
      caption="References"
      hidesCaption
      empty={empty}
      columns={['Definition', 'Register', 'Place in the definition']}
      rows={references.map(({ definitionId, definitionName, register, pointer }) => ({
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
  );
}
