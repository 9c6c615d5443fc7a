import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";

/**
 * Returns the object in a JSON file that belongs to the current user and that no other user can read or write, as `npm start`
 * writes its files. Undefined for any other file: another user may have put it there, or it came with a repository.
 */
export async function readOwnJson(file: string): Promise<object | undefined> {
  let handle: FileHandle | undefined;
  try {
    // A named pipe would otherwise wait for its writer.
    handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const found = await handle.stat();
    const isOwn = found.isFile() && found.uid === process.getuid?.() && (found.mode & 0o077) === 0;
    const content: unknown = isOwn ? JSON.parse(await handle.readFile("utf8")) : undefined;
    return typeof content === "object" && content !== null ? content : undefined;
  } catch {
    return undefined;
  } finally {
    await handle?.close();
  }
}
