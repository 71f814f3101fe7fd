// Tells a person that their changes are not saved, and lets them discard the changes.

export function Unsaved({ onDiscard }: { onDiscard(): void }) {
  return (
    <p class="note">
      You have changes that are not saved.{' '}
      <button type="button" class="link" onClick={onDiscard}>
        Discard them
      </button>
    </p>
  );
}
