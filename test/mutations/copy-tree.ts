import { execFileSync } from "node:child_process";
import { cp, mkdtemp, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Copies the working tree (tracked files, and new files that git does not ignore) to a new directory with the same
 * packages. Returns its path.
 */
export async function copyTree(root: string): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), "payment-service-mutations-"));
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
  const deleted = execFileSync("git", ["ls-files", "-z", "--deleted"], { cwd: root });
  const gone = new Set(deleted.toString().split("\0"));
  const files = listed.toString().split("\0");
  for (const file of files.filter((path) => path !== "" && !gone.has(path)))
    await cp(join(root, file), join(copy, file), { recursive: true });
  await symlink(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}
