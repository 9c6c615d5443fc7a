import { findProgram, programFrom } from "../../local/find-program.ts";

/**
 * Returns the program of Alertmanager: ALERTMANAGER, or Debian's package where it is installed. Unpacked elsewhere it does not
 * start, because it reads its templates from /usr/share.
 */
export const findAlertmanager = (): string | undefined =>
  programFrom("ALERTMANAGER") ?? findProgram("prometheus-alertmanager", ["/usr/bin"]);
