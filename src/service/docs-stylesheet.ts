// The stylesheet of the API's page: light and dark, from a phone's width up, with visible focus.
export const docsStylesheet = `
:root {
  color-scheme: light dark;
  --ground: light-dark(#f4f5f7, #14171c);
  --surface: light-dark(#ffffff, #1d2127);
  --line: light-dark(#d5d9e0, #363c46);
  --text: light-dark(#1a1f27, #e8eaed);
  --quiet: light-dark(#566070, #a5adb9);
  --accent: light-dark(#155e75, #67cfe8);
}
* { box-sizing: border-box; }
html { background: var(--ground); scroll-padding-top: 1rem; }
body {
  display: grid; grid-template-columns: minmax(0, 1fr); gap: 0 2.5rem; margin: 0 auto; padding: 2rem 1.25rem 4rem;
  max-width: 80rem; color: var(--text); font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .4rem; letter-spacing: -.01em; }
h1 .quiet { font-size: 1rem; font-weight: 400; letter-spacing: 0; }
h2 { font-size: 1.25rem; margin: 2rem 0 .75rem; }
h3 { font-size: 1.05rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h4 { font-size: .95rem; margin: 1.25rem 0 .4rem; }
header, nav, article { overflow-wrap: anywhere; }
table { overflow-wrap: normal; }
p { margin: 0 0 .75rem; max-width: 45rem; }
.summary { font-weight: 600; }
.quiet { color: var(--quiet); }
a { color: var(--accent); text-underline-offset: .18em; }
a:hover { text-decoration-thickness: 2px; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .9em; overflow-wrap: anywhere; }
.method { color: var(--accent); font: 700 .85em ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--surface); padding: .5rem; }
nav ol { list-style: none; margin: 0; padding: 0; }
nav li { padding: .2rem 0; font-size: .9rem; }
nav li .quiet { display: block; }
article { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; padding: 1.25rem 1.5rem; margin-bottom: 1rem; }
article > :last-child { margin-bottom: 0; }
article:target { border-color: var(--accent); }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; }
th, td { text-align: left; padding: .45rem .75rem .45rem 0; border-bottom: 1px solid var(--line); vertical-align: top; font-weight: 400; }
thead th { font-size: .875rem; color: var(--quiet); font-weight: 600; }
tr:last-child > * { border-bottom: 0; }
dl.answers { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .5rem 1rem; margin: 0; }
dt { font-weight: 700; }
dd { margin: 0; overflow-wrap: anywhere; }
dd p { margin: .25rem 0 0; }
ul { margin: .25rem 0; padding-left: 1.25rem; }
.members { list-style: none; padding-left: .9rem; border-left: 2px solid var(--line); }
.members li { padding: .1rem 0; }
.schema { font-size: .95rem; overflow-wrap: anywhere; }
@media (min-width: 64rem) {
  body { grid-template-columns: 20rem minmax(0, 1fr); }
  header { grid-column: 1 / -1; }
  nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto; padding: 2rem .5rem 1rem 0; }
}
`;
