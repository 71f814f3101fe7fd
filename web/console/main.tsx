// The console for administrators.
import { render } from 'preact';
import '../shared/page.css';

const page = document.querySelector('#page');
if (page !== null)
  render(
    <main>
      <h1>Console</h1>
    </main>,
    page,
  );
