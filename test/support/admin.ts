import { runAdmin } from "../../ops/admin/program.ts";

export type AdminRun = { code: number; stdout: string; stderr: string };

/** An operator's commands in a place with these settings alone, without a process of their own for each. */
export const adminIn =
  (env: Record<string, string>) =>
  async (...args: string[]): Promise<AdminRun> => {
    const said = { stdout: "", stderr: "" };
    const code = await runAdmin(args, {
      env,
      write: (text) => {
        said.stdout += text;
      },
      writeError: (text) => {
        said.stderr += text;
      },
    });
    return { code, ...said };
  };
