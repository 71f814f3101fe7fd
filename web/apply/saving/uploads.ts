// The files of a form that are being sent, and those that could not be sent. They belong to the form rather than to a
// control, so that a page change neither loses nor hides them.
import { type ApiProblem, asProblem } from '../api.ts';
import { isEqual, type Path, pathWithoutItem } from '../model/json.ts';
import { newId } from '../new-id.ts';

export interface Upload {
  readonly id: string;
  readonly file: File;
  /** Path of the question's value. It changes if an item before it is removed from a list. */
  readonly path: Path;
  /** True if the question takes several files. */
  readonly isMultiple: boolean;
  /** Why the file could not be sent; undefined while it is waiting or being sent. */
  readonly failure?: Failure;
}

/**
 * `refused`: the service does not accept this file, so it would fail again. `noService`: the platform cannot store
 * files. `code`: the person must enter a code first.
 */
type Failure = 'tooLarge' | 'tooMany' | 'refused' | 'noService' | 'code' | 'failed';

interface UploadsOptions {
  /** Sends a file, and returns its URN. */
  send(file: File, signal: AbortSignal): Promise<string>;
  /** Adds the URN of an uploaded file to the form. */
  onSent(upload: Upload, urn: string): void;
  /** Called after a file could not be sent, and `all` contains its failure. */
  onFailed(problem: ApiProblem): void;
  /** Called after each change of `all`. */
  onChanged(): void;
}

/** A running upload. `ended` never rejects. */
interface Run {
  ended: Promise<void>;
  abort: AbortController;
}

export class Uploads {
  /** Running and failed uploads, in the order in which the files were chosen. */
  all: readonly Upload[] = [];
  readonly #options: UploadsOptions;
  readonly #runs = new Map<string, Run>();

  constructor(options: UploadsOptions) {
    this.#options = options;
  }

  get running(): readonly Upload[] {
    return this.all.filter(({ failure }) => failure === undefined);
  }

  get failed(): readonly Upload[] {
    return this.all.filter(({ failure }) => failure !== undefined);
  }

  /** Returns the uploads of one question. */
  of(path: Path): readonly Upload[] {
    return this.all.filter((upload) => isEqual(upload.path, path));
  }

  /**
   * Sends a file after the other files of its question, so that the file that was chosen last is added last. Removes
   * failed uploads of the question: all of them if it takes one file, otherwise those of files with the same name.
   */
  add({ file, path, isMultiple }: Pick<Upload, 'file' | 'path' | 'isMultiple'>): void {
    const upload: Upload = { id: newId(), file, path, isMultiple };
    const before = this.of(path);
    const replaced = before.filter(({ failure, file: { name } }) => failure && (!isMultiple || name === file.name));
    const earlier = before.map(({ id }) => this.#runs.get(id)?.ended);
    const abort = new AbortController();
    this.#change([...this.all.filter((other) => !replaced.includes(other)), upload]);
    this.#runs.set(upload.id, { abort, ended: Promise.all(earlier).then(() => this.#run(upload, abort.signal)) });
  }

  retry(upload: Upload): void {
    this.discard(upload);
    this.add(upload);
  }

  /** Sends the files again that were refused because a code had to be entered. */
  retryAfterCode(): void {
    for (const upload of this.failed) if (upload.failure === 'code') this.retry(upload);
  }

  /** Stops sending a file and forgets it, so that it is not added to the form. */
  discard({ id }: Upload): void {
    this.#runs.get(id)?.abort.abort();
    this.#change(this.all.filter((other) => other.id !== id));
  }

  /** Corrects the paths after item `index` was removed from a list. Discards the files of this item. */
  removeItem(list: Path, index: number): void {
    for (const upload of this.all) {
      const path = pathWithoutItem(upload.path, list, index);
      if (path) this.#update(upload.id, { path });
      else this.discard(upload);
    }
  }

  /** Waits until no upload is running. Resolves to false if a file could not be sent. */
  async settled(): Promise<boolean> {
    while (this.running.length > 0) await Promise.all(this.running.map(({ id }) => this.#runs.get(id)?.ended));
    return this.failed.length === 0;
  }

  discardAll(): void {
    for (const upload of this.all) this.discard(upload);
  }

  async #run({ id, file }: Upload, signal: AbortSignal): Promise<void> {
    // An upload that is no longer in `all` was discarded.
    const upload = () => this.all.find((other) => other.id === id);
    try {
      const urn = upload() && (await this.#options.send(file, signal));
      const sent = upload();
      if (urn === undefined || !sent) return;
      this.#options.onSent(sent, urn);
      this.#change(this.all.filter((other) => other.id !== id));
    } catch (cause) {
      const problem = asProblem(cause);
      const isDiscarded = upload() === undefined;
      this.#update(id, { failure: failureOf(problem) });
      if (!isDiscarded) this.#options.onFailed(problem);
    } finally {
      this.#runs.delete(id);
    }
  }

  #update(id: string, change: Partial<Upload>): void {
    this.#change(this.all.map((upload) => (upload.id === id ? { ...upload, ...change } : upload)));
  }

  #change(all: readonly Upload[]): void {
    this.all = all;
    this.#options.onChanged();
  }
}

function failureOf({ status, type }: ApiProblem): Failure {
  if (type === 'too-many-files') return 'tooMany';
  if (type === 'no-file-service') return 'noService';
  if (status === 400) return 'refused';
  if (status === 401) return 'code';
  return status === 413 ? 'tooLarge' : 'failed';
}
