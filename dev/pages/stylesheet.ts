// The stylesheet of all pages of `npm start`, for screens as narrow as a phone's or wider.
import { pageStylesheet } from '../../src/service/openapi/page-stylesheet.ts';

export const stylesheet = `${pageStylesheet}:root {
  --on-accent: light-dark(#ffffff, #0c2b35);
  --alarm: light-dark(#a3221a, #ffa79f);
  --alarm-ground: light-dark(#fdecea, #3d1d1b);
  --good: light-dark(#17663a, #7fd6a2);
}
body { min-height: 100vh; max-width: 60rem; background: var(--ground); }
body.narrow { max-width: 27rem; display: flex; flex-direction: column; justify-content: center; padding-block: 1.5rem; }
h2 { font-size: 1.1rem; margin: 2.25rem 0 .75rem; }
p { margin: 0 0 1rem; }
.small { font-size: .875rem; }
pre, .code { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .9em; }
pre code { font-size: 1em; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; }
.card > :last-child { margin-bottom: 0; }
.note { margin: 1rem .25rem 0; }
nav { margin-bottom: .75rem; }
.command { background: var(--ground); border: 1px solid var(--line); border-radius: 8px; padding: .65rem .85rem; }
.card {
  background: var(--surface); border: 1px solid var(--line); border-radius: 12px; padding: 1.5rem;
  box-shadow: 0 1px 3px rgb(0 0 0 / .06);
}
label { display: block; font-weight: 600; margin-bottom: .3rem; }
input[type=email], input[type=password], input[type=search], input[type=text] {
  width: 100%; padding: .65rem .75rem; margin-bottom: 1.1rem; font: inherit; color: inherit;
  background: var(--ground); border: 1px solid var(--quiet); border-radius: 8px;
}
button {
  white-space: nowrap;
  font: inherit; font-weight: 600; padding: .65rem 1.1rem; border-radius: 8px; cursor: pointer;
  color: var(--accent); background: transparent; border: 1px solid var(--accent);
}
button.main { color: var(--on-accent); background: var(--accent); }
button:hover { filter: brightness(1.08); }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: .4rem; }
.actions .main { flex: 1; }
.search { margin-bottom: 1rem; }
.search .actions { align-items: baseline; }
.search input { flex: 1; min-width: 12rem; margin: 0; }
summary { cursor: pointer; }
.alarm {
  background: var(--alarm-ground); color: var(--alarm); border: 1px solid currentColor; border-radius: 8px;
  padding: .65rem .85rem; margin-bottom: 1.1rem;
}
.grid { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr)); padding: 0; margin: 0; list-style: none; }
.grid a { font-weight: 600; }
.grid p { margin: .35rem 0 0; }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; font-size: .875rem; color: var(--quiet); font-weight: 600; }
th, td { padding: .55rem .75rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th, td code { white-space: nowrap; }
td { min-width: 7rem; }
tr:last-child td { border-bottom: 0; }
.scroll { overflow-x: auto; padding: .25rem .5rem; }
.head { display: flex; flex-wrap: wrap; align-items: baseline; gap: .5rem 1rem; justify-content: space-between; margin-bottom: 1rem; }
.list { list-style: none; margin: 0; overflow: hidden; }
ul.list { padding: 0; }
.list li + li { border-top: 1px solid var(--line); }
.list a { display: grid; grid-template-columns: 1fr auto; gap: .1rem 1rem; padding: .85rem 1.25rem; color: inherit; text-decoration: none; }
.list a:hover { background: var(--ground); }
.list a:focus-visible { outline-offset: -3px; }
.list strong { overflow-wrap: anywhere; }
.list .line { grid-column: 1 / -1; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .3rem 1rem; margin: 0 0 1.25rem; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
iframe { width: 100%; height: min(60vh, 26rem); border: 1px solid var(--line); border-radius: 8px; background: #ffffff; }
.dot { display: inline-block; width: .65em; height: .65em; border-radius: 50%; background: var(--alarm); margin-right: .45em; }
.dot.good { background: var(--good); }
@media (max-width: 34rem) {
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; }
  .list a { grid-template-columns: 1fr; }
}
`;
