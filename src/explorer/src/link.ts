/** What a link to this page may bring along: `?query=…&variables=…` fill a tab, and run nothing. */
export interface LinkedOperation {
  query: string;
  variables: string;
}

/** Reads the operation and takes it out of the address, so that a reload doesn't open it in one more tab. */
export function takeLinkedOperation(): LinkedOperation | undefined {
  const address = new URL(location.href);
  const query = address.searchParams.get('query');
  if (!query) return undefined;
  const variables = address.searchParams.get('variables') ?? '';
  address.search = '';
  history.replaceState(history.state, '', address);
  return { query, variables };
}
