// The stylesheet of the page /docs.
import { pageStylesheet } from './page-stylesheet.ts';

export const docsStylesheet = `${pageStylesheet}html { scroll-padding-top: 1rem; }
body {
  display: grid; grid-template-columns: minmax(0, 1fr); gap: 0 2.5rem; max-width: 80rem;
}
h1 .quiet { font-size: 1rem; font-weight: 400; letter-spacing: 0; }
h2 { font-size: 1.25rem; margin: 2rem 0 .75rem; }
h3 { font-size: 1.05rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
h4 { font-size: .95rem; margin: 1.25rem 0 .4rem; }
header, nav, article { overflow-wrap: anywhere; }
table { overflow-wrap: normal; }
p { margin: 0 0 .75rem; max-width: 45rem; }
.summary { font-weight: 600; }
.method { color: var(--accent); font: 700 .85em ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: .5rem; background: var(--surface); padding: .5rem; }
nav ol { list-style: none; margin: 0; padding: 0; }
nav li { padding: .2rem 0; font-size: .9rem; }
nav li .quiet { display: block; }
article { background: var(--surface); border: 1px solid var(--line); border-radius: 12px; padding: 1.25rem 1.5rem; margin-bottom: 1rem; }
article > :last-child { margin-bottom: 0; }
article:target { border-color: var(--accent); }
pre { overflow-x: auto; max-height: 24rem; margin: 0 0 .75rem; padding: .75rem 1rem; background: var(--ground); border: 1px solid var(--line); border-radius: 8px; font-size: .9rem; }
pre code { overflow-wrap: normal; }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; }
th, td { text-align: left; padding: .45rem .75rem .45rem 0; border-bottom: 1px solid var(--line); vertical-align: top; font-weight: 400; }
thead th { font-size: .875rem; color: var(--quiet); font-weight: 600; }
tr:last-child > * { border-bottom: 0; }
dl.responses { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .5rem 1rem; margin: 0; }
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
