// The entry point of the applicant's pages.
import { render } from 'preact';
import '../shared/page.css';
import '../shared/forms.css';
import './apply.css';
import { App } from './app.tsx';

const page = document.querySelector('#page');
// The text in the page says what to do if this script cannot be loaded.
page?.replaceChildren();
if (page !== null) render(<App />, page);
