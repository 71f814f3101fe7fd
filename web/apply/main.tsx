// The applicant's pages.
import { render } from 'preact';
import '../shared/page.css';

const page = document.querySelector('#page');
if (page !== null)
  render(
    <main>
      <h1>Apply</h1>
    </main>,
    page,
  );
