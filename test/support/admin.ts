import { runAdmin } from "../../ops/admin/program.ts";
import { inRole } from "./database-roles.ts";

export type AdminRun = { code: number; stdout: string; stderr: string };

/**
 * Returns a function that runs operator commands in this process with `env` as their whole environment. The commands connect
 * to the database of `DATABASE_URL` in their own role.
 */
export const adminIn =
  (env: Record<string, string>) =>
  async (...args: string[]): Promise<AdminRun> => {
    const output = { stdout: "", stderr: "" };
    const code = await runAdmin(args, {
      env: await inRole("admin", env),
      write: (text) => {
        output.stdout += text;
      },
      writeError: (text) => {
        output.stderr += text;
      },
    });
    return { code, ...output };
  };
