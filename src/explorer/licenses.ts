/** Writes down whose code is in the bundle, as its licences demand. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Plugin } from 'vite';

const TEXTS = /^(licen[cs]e|copying|notice|thirdpartynotices)/i;

interface Package {
  name: string;
  version: string;
  license?: string;
  author?: string | { name?: string };
  folder: string;
}

/** The package that a module belongs to: the nearest folder up whose package.json has a name and a version. */
function packageOf(moduleId: string): Package | undefined {
  let folder = dirname(moduleId.replace(/\?.*$/, ''));
  for (; folder.includes('node_modules/'); folder = dirname(folder)) {
    let manifest: Partial<Package>;
    try {
      manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Partial<Package>;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue;
      throw error;
    }
    if (manifest.name && manifest.version) return { ...(manifest as Package), folder };
  }
  return undefined;
}

function entry({ name, version, license, author, folder }: Package): string {
  const holder = typeof author === 'object' ? author.name : author;
  const files = readdirSync(folder, { withFileTypes: true }).filter((file) => file.isFile() && TEXTS.test(file.name));
  const texts = files.map((file) => readFileSync(join(folder, file.name), 'utf8').trim());
  return [`${name} ${version}`, `License: ${license}`, holder && `Author: ${holder}`, ...texts].filter(Boolean).join('\n\n');
}

/**
 * A pair of plugins: `collect` notes the packages of one bundle and belongs into every worker's build (Vite's own
 * `build.license` doesn't see those), `write` does the same for the pages and emits `fileName` with all of them.
 */
export function thirdPartyLicenses(fileName: string): { collect: Plugin; write: Plugin } {
  const packages = new Map<string, Package>();
  const note = (moduleIds: string[]) => {
    for (const id of moduleIds) {
      const found = packageOf(id);
      if (found) packages.set(`${found.name}@${found.version}`, found);
    }
  };
  return {
    collect: {
      name: 'collect-licenses',
      generateBundle(_, bundle) {
        for (const part of Object.values(bundle)) if (part.type === 'chunk') note(part.moduleIds);
      },
    },
    write: {
      name: 'write-licenses',
      generateBundle(_, bundle) {
        for (const part of Object.values(bundle)) if (part.type === 'chunk') note(part.moduleIds);
        const entries = [...packages.keys()].sort().map((key) => entry(packages.get(key)!));
        const heading = 'The web explorer contains code of these packages.';
        this.emitFile({ type: 'asset', fileName, source: [heading, ...entries].join(`\n\n${'-'.repeat(80)}\n\n`) + '\n' });
      },
    },
  };
}
