import { readdirSync, watch } from "node:fs";
import { join } from "node:path";

/** Changes within this time after the first one count as one, milliseconds. An editor may write a file several times. */
const SETTLE_MS = 200;
/** Folders without code that a running process loads. */
const ignored = new Set(["node_modules", "test", "docs", "scripts", "local"]);

/**
 * Calls `onChange` with the name of a source file after it has changed in one of the project's folders. Returns a function
 * that stops watching.
 */
export function watchSources(root: string, onChange: (file: string) => unknown): () => void {
  let timer: NodeJS.Timeout | undefined;
  const folders = readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith(".") && !ignored.has(entry.name))
    .map(({ name }) => name);
  const watchers = folders.map((folder) =>
    watch(join(root, folder), { recursive: true }, (_event, file) => {
      if (timer !== undefined || file === null || !/\.(ts|json|css|html|svg)$/.test(file)) return;
      timer = setTimeout(() => {
        timer = undefined;
        onChange(join(folder, file));
      }, SETTLE_MS);
    }),
  );
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers) watcher.close();
  };
}
