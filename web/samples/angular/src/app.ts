// A frontend in Angular: one component. Angular's HttpClient would add the CSRF header automatically, because the
// cookie and the header have Angular's default names. The sample uses the `fetch` of TokenHandlerClient instead,
// because that `fetch` also notices the end of the session.
import { Component, computed, signal } from '@angular/core';
import { TokenHandlerClient } from '../../../token-handler-client/token-handler-client.ts';

const forms = '/token-handler/targets/form-service/form/v1/forms';

interface Form {
  id: string;
  definitionId: string;
  status: string;
}

@Component({
  selector: 'app-root',
  template: `
    <h1>My forms</h1>
    <p role="status">{{ text() }}</p>
    <p>
      @if (state() === 'expiring') {
        <button type="button" (click)="stay()">Stay signed in</button>
      }
      @if (isOpen()) {
        <button type="button" (click)="signOut()">Sign out</button>
      } @else if (state() !== 'loading') {
        <button type="button" (click)="client.signIn()">Sign in</button>
      }
    </p>
    <form (submit)="create($event)">
      <label>Kind of form <input #field [value]="typed()" (input)="typed.set(field.value)" required></label>
      <button type="submit">Create draft</button>
    </form>
    <ul>
      @for (form of list(); track form.id) {
        <li>{{ form.definitionId }}: {{ form.status }}</li>
      }
    </ul>
  `,
})
export class App {
  readonly typed = signal('');
  readonly list = signal<Form[]>([]);
  readonly state = signal<'loading' | 'signed-in' | 'signed-out' | 'expiring' | 'expired'>('loading');
  readonly problem = signal('');
  readonly client = new TokenHandlerClient({ clientId: 'my-app', tenant: 'demo', keep: () => this.typed() });
  readonly isOpen = computed(() => this.state() === 'signed-in' || this.state() === 'expiring');
  readonly text = computed(
    () =>
      this.problem() ||
      {
        loading: '',
        'signed-in': `Signed in as ${this.client.session?.name}`,
        'signed-out': 'Nobody is signed in',
        expiring: 'Your session ends soon',
        expired: 'Your session has ended. What you typed is kept.',
      }[this.state()],
  );

  constructor() {
    this.client.on((event) => {
      if (event.type === 'unauthorized') return;
      this.state.set(event.type);
      if (!this.client.session) this.list.set([]);
      if (event.type !== 'signed-in') return;
      const kept = this.client.restore();
      if (typeof kept === 'string') this.typed.set(kept);
      void this.load();
    });
  }

  async load(): Promise<void> {
    const response = await this.client.fetch(`${forms}?mine=true`);
    if (response.ok) this.list.set((await response.json()).results);
  }

  async stay(): Promise<void> {
    await this.load();
    this.state.set('signed-in');
  }

  async create(event: Event): Promise<void> {
    event.preventDefault();
    this.problem.set('');
    const headers = { 'Content-Type': 'application/json' };
    const body = JSON.stringify({ definitionId: this.typed() });
    const response = await this.client.fetch(forms, { method: 'POST', headers, body });
    if (response.status === 401) return;
    if (response.ok) await this.load();
    else this.problem.set((await response.json()).detail);
  }

  signOut(): void {
    this.client.signOut(location.pathname);
  }
}
