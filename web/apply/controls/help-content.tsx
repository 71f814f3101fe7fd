// Instructions between the questions. Everything stays text: markup in a definition is not interpreted, and pictures
// on other servers are shown as links, because the pages load nothing from other servers.
import type { ComponentChildren } from 'preact';
import { labelOf, optionsOf, textOf, type UiElement } from '../model/elements.ts';
import { isObject } from '../model/json.ts';

export function HelpContent({ element, children }: { element: UiElement; children: ComponentChildren }) {
  const options = optionsOf(element);
  const props = isObject(options.componentProps) ? options.componentProps : {};
  const heading = labelOf(element) ?? textOf(props.heading);
  const text = <HelpText help={options.help ?? props.message} />;
  const link = safeLink(options.link ?? options.src);
  if (link !== undefined)
    return (
      <p>
        <a href={link} rel="noopener noreferrer">
          {textOf(options.help) ?? textOf(options.alt) ?? heading ?? link}
        </a>
      </p>
    );
  if (options.variant === 'details')
    return (
      <details class="field">
        <summary>{heading}</summary>
        {text}
        {children}
      </details>
    );
  return (
    <section class={element.type === 'Callout' ? 'notice field' : 'field'}>
      {heading !== undefined && <h2>{heading}</h2>}
      {text}
      {children}
    </section>
  );
}

function HelpText({ help }: { help: unknown }) {
  if (Array.isArray(help))
    return (
      <ul>
        {help.map((line) => (
          <li key={String(line)}>{String(line)}</li>
        ))}
      </ul>
    );
  return typeof help === 'string' ? <p class="lines">{help}</p> : null;
}

/**
 * Returns undefined for schemes other than http, https, mailto and tel, because a link such as `javascript:` could run
 * scripts.
 */
function safeLink(link: unknown): string | undefined {
  return typeof link === 'string' && /^(?:https?:\/\/|mailto:|tel:)/i.test(link) ? link : undefined;
}
