// Builds the stylesheet of the failure pages, with the operator's colours. Also builds the Content-Security-Policy of
// these pages, which allows only this stylesheet and the logo.
import { pagePolicy } from '../../service/openapi/page-stylesheet.ts';
import { labelOn, type Palette } from './colours.ts';
import type { Logo, PageSettings } from './settings.ts';

const rules = `
* { box-sizing: border-box; }
html { background: var(--background); color: var(--text); }
body {
  max-width: 40rem; min-height: 100vh; margin: 0 auto; padding: 2rem 1rem;
  display: flex; flex-direction: column; justify-content: safe center;
  font: 1.125rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: break-word;
}
header { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1rem; margin: 0 0 1.25rem; font-weight: 600; }
header img { display: block; max-width: 100%; height: 3rem; object-fit: contain; object-position: left; }
main {
  background: var(--surface); border: 1px solid var(--line); border-top: .375rem solid var(--accent);
  border-radius: .5rem; padding: 2rem;
}
h1 { font-size: 1.75rem; line-height: 1.2; letter-spacing: -.01em; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; line-height: 1.3; margin: 1rem 0 .5rem; }
p { margin: 0 0 1rem; text-wrap: pretty; }
a { color: var(--accent); }
.action { margin: 1.5rem 0; }
.action a {
  display: inline-block; padding: .6rem 1.25rem; border: 2px solid var(--accent); border-radius: .375rem;
  background: var(--accent); color: var(--label); font-weight: 600; text-decoration: none;
}
.action a:hover { text-decoration: underline; text-underline-offset: .2em; }
:focus-visible { outline: .1875rem solid var(--accent); outline-offset: .1875rem; border-radius: .25rem; }
dl { margin: 1.5rem 0 0; padding: 1rem 0 0; border-top: 1px solid var(--line); font-size: 1rem; }
dl div { display: flex; flex-wrap: wrap; gap: 0 .75rem; margin: 0 0 .25rem; }
dt { min-width: 7.5rem; }
dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .9375em; }
details { margin: 1rem 0 0; padding: 1rem 0 0; border-top: 1px solid var(--line); }
summary { color: var(--accent); cursor: pointer; width: fit-content; text-decoration: underline; text-underline-offset: .2em; }
details > :last-child { margin-bottom: 0; }
footer { margin: 1.25rem 0 0; font-size: 1rem; }
@media (max-width: 30rem) {
  body { justify-content: flex-start; padding: 1rem; }
  main { padding: 1.25rem; }
  h1 { font-size: 1.5rem; }
  .action a { display: block; text-align: center; }
  dl div { display: block; margin: 0 0 .5rem; }
}
@media (forced-colors: active) {
  .action a { border-color: LinkText; }
}
@media print {
  .action, details { display: none; }
}
`;

/** Returns the stylesheet. The colours have the form #rrggbb. */
export function stylesheetOf({ light, dark }: PageSettings['palettes']): string {
  return `:root { color-scheme: light dark; ${variables(light)} }
@media (prefers-color-scheme: dark) { :root { ${variables(dark)} } }${rules}`;
}

function variables({ background, surface, text, accent }: Palette): string {
  const line = `${text}40`;
  const colours = { background, surface, text, accent, line, label: labelOn(accent) };
  return Object.entries(colours)
    .map(([name, colour]) => `--${name}: ${colour};`)
    .join(' ');
}

/** Returns the Content-Security-Policy of the pages. It allows this stylesheet, the logo, and nothing else. */
export function policyOf(stylesheet: string, logo: Logo | undefined): string {
  const sources = [logo?.src, logo?.darkSrc].filter((source) => source?.startsWith('https:'));
  return pagePolicy(stylesheet, ['data:', ...new Set(sources)].join(' '));
}
