/** Where GraphiQL keeps its tabs, history and settings: a part of localStorage that is this page's own. */
import { createLocalStorage } from '@graphiql/toolkit';

const PERSIST_HEADERS = 'graphiql:persistHeaders';
const HISTORIES = ['graphiql:queries', 'graphiql:favorites'];

/** Namespaced by path, since one origin (a port of localhost, say) serves many applications over time. */
const storage = createLocalStorage({ namespace: `reverie${new URL('.', location.href).pathname}` });

function withoutHeaders(history: string): string {
  return JSON.stringify(JSON.parse(history), (key, value: unknown) => (key === 'headers' ? undefined : value));
}

/** Whether the user switched "persist headers" on. GraphiQL forgets it on reload unless it is told. */
export function persistsHeaders(): boolean {
  return storage.getItem(PERSIST_HEADERS) === 'true';
}

/**
 * GraphiQL leaves request headers out of the stored tabs unless the user wants them kept, but not out of the
 * history; headers carry API keys, so here they stay out of both.
 */
export const graphiqlStorage: typeof storage = {
  ...storage,
  get length() {
    return storage.length;
  },
  setItem(key, value) {
    storage.setItem(key, HISTORIES.includes(key) && !persistsHeaders() ? withoutHeaders(value) : value);
    if (key === PERSIST_HEADERS && value !== 'true') {
      for (const history of HISTORIES) {
        const stored = storage.getItem(history);
        if (stored !== null) storage.setItem(history, withoutHeaders(stored));
      }
    }
  },
};
