/**
 * The database roles of the processes. The owner, which runs the migrations, needs no entry. `admin` is the command
 * line of operators, `reader` is for people and dashboards that only look.
 */
export const roles = {
  api: "pay_api",
  worker: "pay_worker",
  board: "pay_board",
  admin: "pay_admin",
  reader: "pay_reader",
} as const;

export type Role = keyof typeof roles;
