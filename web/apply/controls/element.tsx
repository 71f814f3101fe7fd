// Shows an element of the UI schema. An element that is unknown or fails never hides the rest of the page.
import { Component, type ComponentChildren } from 'preact';
import { useForm } from '../form-context.ts';
import { elementsOf, isOperable, isShown, labelOf, type Place, textOf, type UiElement } from '../model/elements.ts';
import { fieldOf } from '../model/fields.ts';
import { Control } from './control.tsx';
import { HelpContent } from './help-content.tsx';

interface ElementProps {
  element: UiElement;
  place: Place;
}

export function Elements({ elements, place }: { elements: readonly UiElement[]; place: Place }) {
  return (
    <>
      {elements.map((element, index) => (
        <Guarded key={index}>
          <Element element={element} place={place} />
        </Guarded>
      ))}
    </>
  );
}

function Element({ element, place }: ElementProps) {
  const { data } = useForm();
  if (!isShown(element, data, place.path)) return null;
  const shown = <ShownElement element={element} place={place} />;
  if (isOperable(element, data, place.path)) return shown;
  return (
    <fieldset class="plain" disabled role="presentation">
      {shown}
    </fieldset>
  );
}

function ShownElement({ element, place }: ElementProps) {
  const field = element.scope === undefined ? undefined : fieldOf(element, place);
  if (field) return <Control field={field} />;
  const inner = <Elements elements={elementsOf(element.elements)} place={place} />;
  const label = labelOf(element);
  switch (element.type) {
    case 'HorizontalLayout':
      return <div class="row">{inner}</div>;
    case 'Group':
    case 'Category':
      return (
        <section>
          {label !== undefined && <h2>{label}</h2>}
          {inner}
        </section>
      );
    case 'Label':
      return <p>{textOf(element.text) ?? label}</p>;
    case 'HelpContent':
    case 'Callout':
      return <HelpContent element={element}>{inner}</HelpContent>;
    default:
      return inner;
  }
}

class Guarded extends Component<{ children: ComponentChildren }, { isBroken: boolean }> {
  override state = { isBroken: false };
  static override getDerivedStateFromError() {
    return { isBroken: true };
  }
  override render() {
    return this.state.isBroken ? <NotShown /> : this.props.children;
  }
}

function NotShown() {
  return <p class="notice">{useForm().texts.fields.notShown}</p>;
}
