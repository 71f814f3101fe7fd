// The form as applicants would see it, shown by the renderers of the applicant's pages. Values that are entered stay in
// this page.
import { useMemo, useState } from 'preact/hooks';
import type { Api } from '../../../apply/api.ts';
import { Elements } from '../../../apply/controls/element.tsx';
import { type FormContext, FormProvider } from '../../../apply/form-context.ts';
import { type Place, pagesOf } from '../../../apply/model/elements.ts';
import { withoutItem } from '../../../apply/model/files.ts';
import { isObject, withAnswer } from '../../../apply/model/json.ts';
import { visiblePages } from '../../../apply/model/questions.ts';
import { createRegisters } from '../../../apply/registers.ts';
import { Uploads } from '../../../apply/saving/uploads.ts';
import { textsOf } from '../../../apply/texts/texts.ts';
import { path } from '../../api/request.ts';
import { send } from '../../api/send.ts';
import type { Definition } from '../definition.ts';

/** Registers are read with the administrator's rights. Files cannot be uploaded, because the preview sends nothing. */
const registers = createRegisters({
  entries: (name) => send({ target: 'form-service', path: path`/form/v1/registers/${name}/entries` }),
});

const nothing = () => undefined;
const uploads = new Uploads({
  send: async () => '',
  onSent: nothing,
  onFailed: nothing,
  onChanged: nothing,
});

export function Preview({ definition: { dataSchema, uiSchema } }: { definition: Definition }) {
  const [data, setData] = useState<unknown>({});
  const model = useMemo(() => {
    const schema = isObject(dataSchema) ? dataSchema : {};
    const place: Place = { root: schema, schema, path: [] };
    return { place, pages: pagesOf(uiSchema, place) };
  }, [JSON.stringify([dataSchema, uiSchema])]);
  const form: FormContext = {
    ...{ formId: 'preview', texts: textsOf('en'), language: 'en', data, files: {}, allowsFiles: false },
    api: {} as Api,
    registers,
    errors: new Map(),
    uploads,
    changeContent: () => undefined,
    change: (at, value) => setData((latest: unknown) => withAnswer(latest, at, value)),
    removeItem: (list, index) =>
      setData((latest: unknown) => withoutItem({ data: latest, files: {} }, list, index).data),
    announce: () => undefined,
    show: (elements, place) => <Elements elements={elements} place={place} />,
  };
  return (
    <FormProvider value={form}>
      {visiblePages(model.pages, data).map(({ title, elements }, index) => (
        <div key={`${index} ${title}`}>
          <h4>{title ?? `Page ${index + 1}`}</h4>
          <Elements elements={elements} place={model.place} />
        </div>
      ))}
    </FormProvider>
  );
}
