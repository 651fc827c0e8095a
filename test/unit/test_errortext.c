/*
 * test_errortext.c: PostgreSQL's messages about memory, in many languages.
 *
 * The texts are what a server 15 prints with its translations.
 */
#include "ka_test.h"

#include "errortext.h"

typedef struct Case
{
	const char *text;
	const char *call;
	int64_t		bytes;
	const char *error;
	const char *signal;
} Case;

static void
check_cases(const Case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
	{
		const Case *c = &cases[i];
		KaErrorText error;
		int			before = ka_test_failures;

		CHECK_INT(ka_error_parse(c->text, &error), c->call != NULL || c->signal != NULL);
		CHECK_STR(error.call, c->call);
		CHECK_INT(error.bytes, c->bytes);
		CHECK_STR(error.error, c->error);
		CHECK_STR(error.signal, c->signal);
		if (ka_test_failures > before)
			printf("# text: %s\n", c->text);
	}
}

#define CASES(...) \
	do { \
		static const Case cases[] = {__VA_ARGS__}; \
		check_cases(cases, KA_LENGTH(cases)); \
	} while (0)

TEST(mapping_english)
{
	CASES(
		  {"FATAL:  could not map anonymous shared memory: Cannot allocate memory\n"
		  "HINT:  This error usually means that PostgreSQL's request for a shared memory segment exceeded available memory, "
		  "swap space, or huge pages. To reduce the request size (currently 148897792 bytes), reduce PostgreSQL's shared "
		  "memory usage, perhaps by reducing shared_buffers or max_connections.",
		  "mmap", 148897792, "ENOMEM", NULL},
	/* the message alone: no size */
		  {"FATAL:  could not map anonymous shared memory: Cannot allocate memory", "mmap", KA_UNKNOWN, "ENOMEM", NULL},
		  {"could not map anonymous shared memory: Operation not permitted", "mmap", KA_UNKNOWN, "EPERM", NULL},
		  {"could not map anonymous shared memory", "mmap", KA_UNKNOWN, NULL, NULL},
	/* a log prefix has numbers, too */
		  {"2026-11-30 10:12:00.000 UTC [4194304] FATAL:  could not map anonymous shared memory: Cannot allocate memory\n"
		  "2026-11-30 10:12:00.000 UTC [4194304] HINT:  To reduce the request size (currently 120259084288 bytes), reduce "
		  "PostgreSQL's shared memory usage, perhaps by reducing \"shared_buffers\" or \"max_connections\".",
		  "mmap", INT64_C(120259084288), "ENOMEM", NULL},
	/* the hint alone: the server gives it for ENOMEM only */
		  {"To reduce the request size (currently 148897792 bytes), reduce shared_buffers or max_connections.",
		  "mmap", 148897792, "ENOMEM", NULL},
	/* as people quote it */
		  {"FATAL: could not map anonymous shared memory: Cannot allocate memory, request of 112500000000 bytes",
		  "mmap", INT64_C(112500000000), "ENOMEM", NULL},
	/* a number beyond 64 bits is none */
		  {"could not map anonymous shared memory (currently 99999999999999999999 bytes)", "mmap", KA_UNKNOWN, NULL, NULL},
		);
}

TEST(mapping_translated)
{
	CASES(
		  {"FATAL:  konnte anonymes Shared Memory nicht mappen: Nicht genügend Hauptspeicher verfügbar\n"
		  "TIPP:  Dieser Fehler bedeutet gewöhnlich, dass das von PostgreSQL angeforderte Shared-Memory-Segment den "
		  "verfügbaren Speicher, Swap-Space oder Huge Pages überschreitet.  Um die benötigte Shared-Memory-Größe zu "
		  "reduzieren (aktuell 148897792 Bytes), reduzieren Sie den Shared-Memory-Verbrauch von PostgreSQL, "
		  "beispielsweise indem Sie »shared_buffers« oder »max_connections« reduzieren.",
		  "mmap", 148897792, "ENOMEM", NULL},
		  {"FATAL:  n'a pas pu créer le segment de mémoire partagée anonyme : Ne peut allouer de la mémoire",
		  "mmap", KA_UNKNOWN, "ENOMEM", NULL},
		  {"ASTUCE :  Pour réduire la taille demandée (actuellement 148897792\u00a0octets), réduisez la valeur du paramètre "
		  "shared_buffers de PostgreSQL ou le paramètre max_connections.",
		  "mmap", 148897792, "ENOMEM", NULL},
		  {"FATAL:  匿名共有メモリをマップできませんでした: メモリを確保できません\n"
		  "ヒント: 要求サイズ（現在 148897792 バイト）を減らすために、shared_buffers または max_connections を減らす",
		  "mmap", 148897792, "ENOMEM", NULL},
		  {"ВАЖНО:  не удалось получить анонимную разделяемую память: Невозможно выделить память\n"
		  "ПОДСКАЗКА:  Для уменьшения запроса (текущий размер: 148897792 Б) уменьшив shared_buffers или max_connections.",
		  "mmap", 148897792, "ENOMEM", NULL},
		  {"致命错误:  无法映射匿名共享内存: 无法分配内存\n"
		  "提示:  要减小请求大小（当前为 148897792 字节），或许可以减小 shared_buffers 或 max_connections。",
		  "mmap", 148897792, "ENOMEM", NULL},
		  {"치명적오류:  가용 공유 메모리 확보 실패: 메모리를 할당할 수 없습니다\n"
		  "힌트:  현재 요구 크기(148897792 바이트)를 좀 줄여 보십시오. shared_buffers 값을 줄이거나 max_connections 값을",
		  "mmap", 148897792, "ENOMEM", NULL},
		  {"FATAL:  no se pudo mapear memoria compartida anónima: No se pudo asignar memoria", "mmap", KA_UNKNOWN, "ENOMEM", NULL},
		  {"FATALE:  mappatura della memoria condivisa anonima fallita: Impossibile allocare memoria", "mmap", KA_UNKNOWN, "ENOMEM", NULL},
	/* an error text that no table has: the error stays unknown */
		  {"FATAL:  konnte anonymes Shared Memory nicht mappen: Die Operation ist nicht erlaubt", "mmap", KA_UNKNOWN, NULL, NULL},
		);
}

TEST(system_v)
{
	CASES(
		  {"FATAL:  could not create shared memory segment: Invalid argument\n"
		  "DETAIL:  Failed system call was shmget(key=5432001, size=148111360, 03600).",
		  "shmget", 148111360, "EINVAL", NULL},
		  {"FATAL:  konnte Shared-Memory-Segment nicht erzeugen: Das Argument ist ungültig\n"
		  "DETAIL:  Fehlgeschlagener Systemaufruf war shmget(Key=5432001, size=4294967296, 03600).\n"
		  "TIPP:  ... den Kernel-Parameter SHMMAX überschreitet, oder möglicherweise kleiner als SHMMIN ist.",
		  "shmget", INT64_C(4294967296), "EINVAL", NULL},
		  {"n'a pas pu créer le segment de mémoire partagée : ???\nshmget(clé=1, size=56, 03600)\n... SHMMNI ... SHMALL ...",
		  "shmget", 56, "ENOSPC", NULL},
		  {"shmget(key=1, size=, 03600) ... SHMALL", "shmget", KA_UNKNOWN, "ENOMEM", NULL},
		  {"could not create shared memory segment: No space left on device", "shmget", KA_UNKNOWN, "ENOSPC", NULL},
		);
}

TEST(dynamic_segments)
{
	CASES(
		  {"ERROR:  could not resize shared memory segment \"/PostgreSQL.1715429384\" to 8388608 bytes: No space left on device",
		  "dsm", 8388608, "ENOSPC", NULL},
		  {"FEHLER:  konnte Größe des Shared-Memory-Segments »/PostgreSQL.1715429384« nicht auf 8388608 Bytes ändern: "
		  "Auf dem Gerät ist kein Speicherplatz mehr verfügbar", "dsm", 8388608, "ENOSPC", NULL},
		  {"ERREUR:  n'a pas pu retailler le segment de mémoire partagée « /PostgreSQL.17 » en 8388608 octets : "
		  "Aucun espace disponible sur le périphérique", "dsm", 8388608, "ENOSPC", NULL},
		  {"ERROR:  共有メモリセグメント\"/PostgreSQL.1715429384\"の8388608バイトへのサイズ変更ができませんでした: "
		  "デバイスに空き領域がありません", "dsm", 8388608, "ENOSPC", NULL},
		  {"could not open shared memory segment \"/PostgreSQL.17\": No such file or directory", "dsm", KA_UNKNOWN, "ENOENT", NULL},
		  {"could not resize shared memory segment \"pg_dynshmem/mmap.17\" to 4096 bytes: No space left on device",
		  "dsm", 4096, "ENOSPC", NULL},
		);
}

TEST(rings)
{
	CASES(
		  {"FATAL:  could not setup io_uring queue: Cannot allocate memory", "io_uring", KA_UNKNOWN, "ENOMEM", NULL},
		  {"FATAL:  could not setup io_uring queue: Operation not permitted\n"
		  "HINT:  Check if io_uring is disabled via /proc/sys/kernel/io_uring_disabled.", "io_uring", KA_UNKNOWN, "EPERM", NULL},
		  {"could not setup io_uring queue: Too many open files in system", "io_uring", KA_UNKNOWN, "ENFILE", NULL},
		  {"could not setup io_uring queue: Too many open files", "io_uring", KA_UNKNOWN, "EMFILE", NULL},
		);
}

TEST(signals_of_processes)
{
	CASES(
		  {"LOG:  server process (PID 4720) was terminated by signal 7: Bus error", NULL, KA_UNKNOWN, NULL, "SIGBUS"},
		  {"LOG:  Serverprozess (PID 4720) wurde von Signal 7 beendet: Bus-Zugriffsfehler", NULL, KA_UNKNOWN, NULL, "SIGBUS"},
		  {"LOG:  processus serveur (PID 4720) a été arrêté par le signal 7 : Erreur du bus", NULL, KA_UNKNOWN, NULL, "SIGBUS"},
		  {"LOG:  サーバープロセス (PID 7)はシグナル7で終了しました: バスエラー", NULL, KA_UNKNOWN, NULL, "SIGBUS"},
		  {"로그:  서버 프로세스 (PID 4720) 프로세스가 7번 시그널을 받아 종료됨: x", NULL, KA_UNKNOWN, NULL, "SIGBUS"},
		  {"日志:  服务器进程（PID 4720）被信号 7 终止: x", NULL, KA_UNKNOWN, NULL, "SIGBUS"},
		  {"СООБЩЕНИЕ:  серверный процесс (PID 4720) был завершён по сигналу 7: x", NULL, KA_UNKNOWN, NULL, "SIGBUS"},
		  {"server process (PID 9) was terminated by signal 9: Killed", NULL, KA_UNKNOWN, NULL, "SIGKILL"},
		  {"server process (PID 7) was terminated by signal 11: Segmentation fault", NULL, KA_UNKNOWN, NULL, "SIGSEGV"},
		  {"Bus error (core dumped)", NULL, KA_UNKNOWN, NULL, "SIGBUS"},
		  {"killed by signal 7", NULL, KA_UNKNOWN, NULL, "SIGBUS"},
		  {"SIGBUS", NULL, KA_UNKNOWN, NULL, "SIGBUS"},
	/* not signals of interest */
		  {"LOG:  server process (PID 7) exited with exit code 7", NULL, KA_UNKNOWN, NULL, NULL},
		  {"server process (PID 7) was terminated by signal 15: Terminated", NULL, KA_UNKNOWN, NULL, NULL},
		  {"LOG:  sending signal to PID 77", NULL, KA_UNKNOWN, NULL, NULL},
		);
}

TEST(other_messages)
{
	CASES(
		  {"", NULL, KA_UNKNOWN, NULL, NULL},
		  {"FATAL:  could not create lock file \"postmaster.pid\": No space left on device", NULL, KA_UNKNOWN, NULL, NULL},
		  {"FATAL:  database files are incompatible with server", NULL, KA_UNKNOWN, NULL, NULL},
		  {"out of memory: Failed on request of size 8192 bytes in memory context \"x\"", NULL, KA_UNKNOWN, NULL, NULL},
		);
}

/*
 * Logs
 */

#define START "2026-11-30 10:00:00.000 UTC [1] LOG:  starting PostgreSQL 17.2 on x86_64-pc-linux-gnu, compiled by gcc, 64-bit\n"
#define READY "2026-11-30 10:00:00.500 UTC [1] LOG:  database system is ready to accept connections\n"
#define BUS "2026-11-30 10:11:01.250 UTC [1] LOG:  server process (PID 9) was terminated by signal 7: Bus error\n"
#define MAPPING "2026-11-30 11:00:00.000 UTC [2] FATAL:  could not map anonymous shared memory: Cannot allocate memory\n" \
	"2026-11-30 11:00:00.000 UTC [2] HINT:  To reduce the request size (currently 148897792 bytes), reduce shared_buffers or max_connections.\n" \
	"2026-11-30 11:00:00.000 UTC [2] LOG:  database system is shut down\n"

static KaArena arena;

static KaLogReport
parse(const char *log)
{
	KaLogReport report;

	REQUIRE(ka_log_parse(&arena, log, &report));
	return report;
}

TEST(log_without_a_failure)
{
	KaLogReport report;

	ka_malloc_arena(&arena);
	report = parse("");
	CHECK(report.message == NULL && report.fatal == NULL);
	report = parse(START READY);
	CHECK(report.message == NULL && report.fatal == NULL);
	ka_malloc_free(&arena);
}

TEST(log_of_a_failed_start)
{
	KaLogReport report;

	ka_malloc_arena(&arena);
	/* the earlier start in the same file was fine, and says nothing about this one */
	report = parse(START READY MAPPING);
	CHECK_STR(report.error.call, "mmap");
	CHECK_INT(report.error.bytes, 148897792);
	CHECK_STR(report.error.error, "ENOMEM");
	CHECK_STR(report.phase, "start");
	CHECK_REAL(report.after_s, -1, 0);
	/* the last one counts */
	report = parse(MAPPING "x\nx\nx\nFATAL:  could not create shared memory segment: Invalid argument\n");
	CHECK_STR(report.error.call, "shmget");
	/* and none, once it has started */
	report = parse(MAPPING START READY);
	CHECK(report.message == NULL);
	ka_malloc_free(&arena);
}

TEST(log_of_a_crash)
{
	KaLogReport report;

	ka_malloc_arena(&arena);
	report = parse(START READY BUS);
	CHECK_STR(report.error.signal, "SIGBUS");
	CHECK_STR(report.phase, "runtime");
	CHECK_REAL(report.after_s, 660.75, 1e-6);
	CHECK(report.message != NULL && strstr(report.message, "PID 9") != NULL && strchr(report.message, '\n') == NULL);
	/* the restart after a crash does not excuse it */
	CHECK(!report.recovered);
	report = parse(START READY BUS READY);
	CHECK_STR(report.error.signal, "SIGBUS");
	CHECK(report.recovered);
	report = parse(START READY BUS READY BUS);
	CHECK(!report.recovered);
	/* before ready: at start */
	report = parse(START BUS);
	CHECK_STR(report.phase, "start");
	CHECK_REAL(report.after_s, -1, 0);
	/* a log that begins later */
	report = parse(BUS);
	CHECK_STR(report.error.signal, "SIGBUS");
	CHECK_STR(report.phase, NULL);
	CHECK_REAL(report.after_s, -1, 0);
	ka_malloc_free(&arena);
}

TEST(log_in_other_languages)
{
	KaLogReport report;

	ka_malloc_arena(&arena);
	report = parse("2026-11-30 10:00:00 CET [1] LOG:  Datenbanksystem ist bereit, um Verbindungen anzunehmen\n"
				   "2026-11-30 10:00:11 CET [1] LOG:  Serverprozess (PID 9) wurde von Signal 7 beendet: Bus-Zugriffsfehler\n");
	CHECK_REAL(report.after_s, 11, 1e-6);
	report = parse("2026-11-30 10:00:00 JST [1] LOG:  データベースシステムの接続受け付け準備が整いました\n"
				   "2026-11-30 10:00:12 JST [1] LOG:  サーバープロセス (PID 9)はシグナル7で終了しました: x\n");
	CHECK_REAL(report.after_s, 12, 1e-6);
	CHECK_STR(report.error.signal, "SIGBUS");
	ka_malloc_free(&arena);
}

TEST(log_of_a_start_that_failed_otherwise)
{
	KaLogReport report;

	ka_malloc_arena(&arena);
	report = parse(START READY "FATAL:  password authentication failed for user \"x\"\n");
	CHECK(report.fatal == NULL);	/* a session's affair */
	report = parse(START "2026-11-30 10:00:01 UTC [1] FATAL:  could not open directory \"base\": Permission denied\n"
				   "LOG:  database system is shut down\n");
	CHECK(report.message == NULL);
	CHECK(report.fatal != NULL && strstr(report.fatal, "could not open directory") != NULL);
	report = parse("FATAL:  old\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\nx\n");
	CHECK(report.fatal == NULL);
	ka_malloc_free(&arena);
}
