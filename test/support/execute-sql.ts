export { execute, namedDatabase } from "../../local/execute-sql.ts";
