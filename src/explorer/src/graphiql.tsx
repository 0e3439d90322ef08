/** The GraphiQL page: an editor for the API beside it, at `./graphql`. */
import 'graphiql/setup-workers/vite';
// The parts of graphiql/style.css without its fonts, which it embeds as data: addresses.
import '@graphiql/react/style.css';
import '@graphiql/plugin-doc-explorer/style.css';
import '@graphiql/plugin-history/style.css';
import 'graphiql/graphiql.css';
import '@graphiql/plugin-explorer/style.css';
import './graphiql.css';
import { explorerPlugin } from '@graphiql/plugin-explorer';
import { HISTORY_PLUGIN } from '@graphiql/plugin-history';
import { createGraphiQLFetcher } from '@graphiql/toolkit';
import { GraphiQL } from 'graphiql';
import { createRoot } from 'react-dom/client';
import { takeLinkedOperation } from './link';
import { graphiqlStorage, persistsHeaders } from './storage';
import { SystemTheme } from './system-theme';
import beliefChanges from './welcome/belief-changes.graphql?raw';
import beliefs from './welcome/beliefs.graphql?raw';
import createMemory from './welcome/create-memory.graphql?raw';
import learn from './welcome/learn.graphql?raw';
import memories from './welcome/memories.graphql?raw';
import search from './welcome/search.graphql?raw';

const endpoint = new URL('./graphql', location.href);
const socket = new URL(endpoint);
socket.protocol = endpoint.protocol === 'https:' ? 'wss:' : 'ws:';

// With a subscriptionUrl, other than with a client of our own, the headers become the socket's connection parameters.
const fetcher = createGraphiQLFetcher({
  url: endpoint.href,
  subscriptionUrl: socket.href,
  enableIncrementalDelivery: false,
});

const linked = takeLinkedOperation();
const welcome = [memories, createMemory, search, learn, beliefs, beliefChanges].map((query) => ({ query }));

createRoot(document.getElementById('root')!).render(
  <GraphiQL
    fetcher={fetcher}
    plugins={[HISTORY_PLUGIN, explorerPlugin({ showAttribution: false })]}
    storage={graphiqlStorage}
    shouldPersistHeaders={persistsHeaders()}
    showPersistHeadersSettings
    defaultTabs={linked ? [linked, ...welcome] : welcome}
    {...(linked && { initialQuery: linked.query, initialVariables: linked.variables })}
  >
    <GraphiQL.Logo>
      <span className="reverie-logo">
        <img src="./favicon.svg" alt="" width="20" height="20" />
        Reverie
      </span>
    </GraphiQL.Logo>
    <SystemTheme />
  </GraphiQL>,
);
