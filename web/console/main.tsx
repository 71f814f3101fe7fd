// The entry point of the console for administrators.
import { render } from 'preact';
import '../shared/page.css';
import './console.css';
import { App } from './app.tsx';
import { followLinks } from './location.ts';

const page = document.querySelector('#page');
// The text in the page says what to do if this script cannot be loaded.
page?.replaceChildren();
if (page !== null) render(<App />, page);
followLinks();
