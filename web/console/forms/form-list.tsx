// The list of forms, with a filter, a search by the applicant's address, and pages.
import { useEffect, useState } from 'preact/hooks';
import { send } from '../api/send.ts';
import { Curl } from '../elements/curl.tsx';
import { useLoad } from '../elements/loaded.tsx';
import { LoadedList, onThisPage, PageLinks } from '../elements/loaded-list.tsx';
import { Page } from '../elements/page.tsx';
import { Table } from '../elements/table.tsx';
import { Time } from '../elements/time.tsx';
import { addressOfPage, go, type Place } from '../location.ts';
import { useSignedIn } from '../session/session-context.ts';
import { type DefinitionList, definitionsRequest, type Form, type FormPage, nameOf } from './form.ts';
import { type Filter, filterOf, listRequest, queryOf } from './form-filter.ts';
import { FormSearch } from './form-search.tsx';

let lastShown: string | undefined;

/** The number of forms before each page, as far as the list was shown since the console was loaded. */
const starts = new Map<string, number>();

/** Returns the address of the list, with the filter and the page that were shown last. */
export function addressOfList(tenant: string): string {
  const address = addressOfPage(tenant, ['forms']);
  return lastShown?.split('?')[0] === address ? lastShown : address;
}

export function FormList({ place }: { place: Place }) {
  const filter = filterOf(place.query);
  const [address, setAddress] = useState('');
  const request = listRequest(filter, address);
  const definitions = useLoad('definitions', () => send<DefinitionList>(definitionsRequest));
  const forms = useLoad(JSON.stringify([filter, address]), () => send<FormPage>(request));
  useEffect(() => {
    lastShown = addressOfPage(place.tenant, ['forms'], place.query);
  });
  const keyOf = (after: string) => JSON.stringify([{ ...filter, after }, address]);
  const formsBefore = ({ next, size }: FormPage['page']) => {
    const start = filter.after === '' ? 0 : starts.get(keyOf(filter.after));
    if (next && start !== undefined) starts.set(keyOf(next), start + size);
    return start;
  };
  const show = (next: Filter) => go(addressOfPage(place.tenant, ['forms'], queryOf(next)));
  return (
    <Page title="Forms">
      <FormSearch
        filter={filter}
        address={address}
        definitions={definitions.value}
        problem={forms.problem}
        onSearch={(next, nextAddress) => {
          setAddress(nextAddress);
          show({ ...next, after: '' });
          if (nextAddress === address) forms.reload();
        }}
      />
      {forms.problem?.errors.some(({ pointer }) => pointer === '/headers/x-applicant-address') || (
        <LoadedList load={forms} page={filter.after} textOf={({ page }) => countText(page, formsBefore(page))}>
          {(page) => <Results page={page} filter={filter} definitions={definitions.value} />}
        </LoadedList>
      )}
      <Curl request={request} label="This list as a curl command" />
    </Page>
  );
}

interface ResultsProps {
  page: FormPage;
  filter: Filter;
  definitions: DefinitionList | undefined;
}

function Results({ page: { results, page }, filter, definitions }: ResultsProps) {
  const { tenant } = useSignedIn();
  const at = (after: string) => addressOfPage(tenant, ['forms'], queryOf({ ...filter, after }));
  return (
    <>
      {page.searchIncomplete && (
        <p class="note">The index of addresses is still being built: older forms may be missing from this search.</p>
      )}
      <Table
        caption="Forms"
        hidesCaption
        empty="No form matches. Change the filter, or clear it."
        columns={['Form', 'Definition', 'Status', 'Created', 'Will be locked', 'Will be deleted']}
        rows={results.map((form) => ({
          key: form.id,
          cells: cellsOf(form, tenant, nameOf(form.definitionId, definitions)),
        }))}
      />
      <PageLinks after={filter.after} next={page.next} at={at} />
    </>
  );
}

/** `start` is the number of forms before the page; undefined if it is unknown. */
function countText({ size, total, totalIsMinimum, next }: FormPage['page'], start: number | undefined): string {
  if (total === undefined) return onThisPage(size, 'form');
  const all = `${totalIsMinimum ? 'more than ' : ''}${total} ${total === 1 ? 'form' : 'forms'}`;
  const isWhole = start === 0 && !next;
  if (start === undefined || size === 0 || isWhole) return all.replace(/^m/, 'M');
  return `${start + 1}–${start + size} of ${all}`;
}

function cellsOf(form: Form, tenant: string, definition: string) {
  return [
    <a class="id" key="id" href={addressOfPage(tenant, ['forms', form.id])}>
      {form.id}
    </a>,
    definition,
    <StatusTag key="status" form={form} />,
    <Time key="created" at={form.created} />,
    <Time key="lock" at={form.lockOn} />,
    <Time key="delete" at={form.deleteOn} />,
  ];
}

export function StatusTag({ form }: { form: Form }) {
  return (
    <>
      <span class="tag">{form.status}</span>
      {form.held && <span class="tag strong">On hold</span>}
    </>
  );
}
