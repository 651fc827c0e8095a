/*
 * errortext.c: what PostgreSQL's messages and its log say about a failure.
 *
 * Messages are translated, and the log may be in any language.  So this looks
 * first at what no translation changes: names of system calls, of kernel limits
 * and of settings, the names of dynamic segments, "PID".  Where nothing of the
 * kind is there, a table holds the words of the languages that PostgreSQL's
 * messages come in.  What neither tells stays unknown.
 *
 * Invariants: pure functions of their text; any bytes are legal input.
 *
 * Locks: none.
 */
#define _GNU_SOURCE 1

#include "errortext.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A number is a size only with its unit: prefixes and process ids have none. */
static const char *const byte_units[] = {
	"byte", "Byte", "octet",
	"bajt",						/* cs, pl */
	"байт", "Б",				/* ru, uk */
	"ბაიტ",						/* ka */
	"バイト",					/* ja */
	"바이트",					/* ko */
	"字节", "字節", "位元組",	/* zh */
};

/* Mapping the main segment, where the hint (it names the settings) is not there. */
static const char *const mmap_phrases[] = {
	"could not map anonymous shared memory",
	"konnte anonymes Shared Memory nicht mappen",
	"no se pudo mapear memoria compartida anónima",
	"n'a pas pu créer le segment de mémoire partagée anonyme",
	"mappatura della memoria condivisa anonima fallita",
	"匿名共有メモリをマップできませんでした",
	"ანონიმური გაზიარებული მეხსიერების მიბმა",
	"가용 공유 메모리 확보 실패",
	"не удалось получить анонимную разделяемую память",
	"kunde inte mappa anonymt delat minne",
	"не вдалося показати анонімну спільну пам'ять",
	"无法映射匿名共享内存",
	"無法映射匿名共享記憶體",
};

typedef struct Phrase
{
	const char *text;
	const char *symbol;
} Phrase;

/* Texts of strerror(); of ENOMEM and ENOSPC in the C library's translations, too. */
static const Phrase errors[] = {
	{"Cannot allocate memory", "ENOMEM"},
	{"Out of memory", "ENOMEM"},
	{"Nicht genügend Hauptspeicher verfügbar", "ENOMEM"},
	{"No se pudo asignar memoria", "ENOMEM"},
	{"Ne peut allouer de la mémoire", "ENOMEM"},
	{"Impossibile allocare memoria", "ENOMEM"},
	{"メモリを確保できません", "ENOMEM"},
	{"메모리를 할당할 수 없습니다", "ENOMEM"},
	{"Невозможно выделить память", "ENOMEM"},
	{"Kan inte allokera minne", "ENOMEM"},
	{"Не вдалося розподілити пам’ять", "ENOMEM"},
	{"无法分配内存", "ENOMEM"},
	{"無法配置記憶體", "ENOMEM"},
	{"No space left on device", "ENOSPC"},
	{"Auf dem Gerät ist kein Speicherplatz mehr verfügbar", "ENOSPC"},
	{"No queda espacio en el dispositivo", "ENOSPC"},
	{"Aucun espace disponible sur le périphérique", "ENOSPC"},
	{"Spazio esaurito sul device", "ENOSPC"},
	{"デバイスに空き領域がありません", "ENOSPC"},
	{"장치에 남은 공간이 없음", "ENOSPC"},
	{"На устройстве не осталось свободного места", "ENOSPC"},
	{"Enheten är full", "ENOSPC"},
	{"Недостатньо місця на пристрої", "ENOSPC"},
	{"设备上没有空间", "ENOSPC"},
	{"裝置上已無多餘空間", "ENOSPC"},
	{"Operation not permitted", "EPERM"},
	{"Permission denied", "EACCES"},
	{"Invalid argument", "EINVAL"},
	{"File exists", "EEXIST"},
	{"Too many open files in system", "ENFILE"},
	{"Too many open files", "EMFILE"},
	{"Function not implemented", "ENOSYS"},
	{"Resource temporarily unavailable", "EAGAIN"},
	{"No such file or directory", "ENOENT"},
	{"Bad address", "EFAULT"},
};

/* The hint of shmget names the limit, and so the error; the order matters. */
static const Phrase shmget_limits[] = {
	{"SHMMNI", "ENOSPC"},
	{"SHMMIN", "EINVAL"},
	{"SHMMAX", "EINVAL"},
	{"SHMALL", "ENOMEM"},
};

/* "signal" beside a PID; an exit code has no such word. */
static const char *const signal_words[] = {
	"signal", "Signal", "señal", "segnale", "sinal", "sygnał", "sinyal",
	"シグナル", "სიგნალ", "시그널", "신호", "сигнал", "信号", "訊號",
};

/* Numbers as on Linux; those that a memory problem, or its killer, sends. */
static const struct
{
	int			number;
	const char *symbol;
}			signals[] = {
	{6, "SIGABRT"}, {7, "SIGBUS"}, {9, "SIGKILL"}, {11, "SIGSEGV"},
};

/* Also of a standby; the beginning that both forms share. */
static const char *const ready_phrases[] = {
	"database system is ready to accept",
	"Datenbanksystem ist bereit, um",
	"el sistema de bases de datos está listo para aceptar",
	"le système de bases de données est prêt pour accepter",
	"database è pronto",
	"データベースシステムの接続受け付け準備が整いました",
	"データベースシステムはリードオンリー接続の受け付け準備ができました",
	"მონაცემთა ბაზის სისტემა მზადაა",
	"이제 데이터베이스 서버로 접속할 수 있습니다",
	"데이터베이스 시스템이 읽기 전용으로 연결을 수락할 준비",
	"система БД готова принимать подключения",
	"databassystemet är redo att ta emot",
	"система бази даних готова до отримання підключення",
	"数据库系统已准备好接受",
	"資料庫系統已準備好接受",
};

static const char *const fatal_words[] = {
	"FATAL", "PANI", "치명적오류", "손상", "ВАЖНО", "ПАНИКА", "ФАТАЛЬНО", "ПАНІКА",
	"ფატალური", "პანიკა", "致命错误", "灾难性错误", "致命錯誤", "嚴重錯誤",
};

static const char *
find_any(const char *text, const char *const *words, size_t nwords)
{
	for (size_t i = 0; i < nwords; i++)
	{
		const char *found = strstr(text, words[i]);

		if (found)
			return found;
	}
	return NULL;
}
#define FIND_ANY(text, words) find_any(text, words, KA_LENGTH(words))

static const char *
find_phrase(const char *text, const Phrase *phrases, size_t nphrases)
{
	for (size_t i = 0; i < nphrases; i++)
	{
		if (strstr(text, phrases[i].text))
			return phrases[i].symbol;
	}
	return NULL;
}
#define FIND_PHRASE(text, phrases) find_phrase(text, phrases, KA_LENGTH(phrases))

/* A plain, no-break or narrow no-break space. */
static const char *
skip_spaces(const char *p)
{
	for (;;)
	{
		if (*p == ' ')
			p++;
		else if (strncmp(p, "\u00a0", 2) == 0)
			p += 2;
		else if (strncmp(p, "\u202f", 3) == 0)
			p += 3;
		else
			return p;
	}
}

/* The decimal number at *p, which moves behind it; KA_UNKNOWN: too large. */
static int64_t
take_number(const char **p)
{
	int64_t		value = 0;
	bool		overflow = false;

	for (; isdigit((unsigned char) **p); (*p)++)
	{
		overflow = overflow || __builtin_mul_overflow(value, 10, &value) ||
			__builtin_add_overflow(value, **p - '0', &value);
	}
	return overflow ? KA_UNKNOWN : value;
}

/* The first number with "bytes" behind it. */
static int64_t
find_bytes(const char *text)
{
	const char *p = text;

	while ((p = strpbrk(p, "0123456789")) != NULL)
	{
		int64_t		value = take_number(&p);
		const char *unit = skip_spaces(p);

		for (size_t i = 0; i < KA_LENGTH(byte_units); i++)
		{
			if (strncmp(unit, byte_units[i], strlen(byte_units[i])) == 0)
				return value;
		}
	}
	return KA_UNKNOWN;
}

/* "shmget(key=5432001, size=148111360, 03600)", which no language translates. */
static int64_t
shmget_size(const char *text)
{
	const char *p = strstr(text, "shmget(");

	if (p == NULL || (p = strstr(p, "size=")) == NULL)
		return find_bytes(text);
	p += strlen("size=");
	return isdigit((unsigned char) *p) ? take_number(&p) : KA_UNKNOWN;
}

/* "server process (PID 4711) was terminated by signal 7: Bus error" */
static const char *
find_signal(const char *text)
{
	for (const char *pid = text; (pid = strstr(pid, "PID")) != NULL; pid++)
	{
		const char *line_end = pid + strcspn(pid, "\n");
		const char *p = skip_spaces(pid + 3);
		const char *word;

		if (!isdigit((unsigned char) *p))
			continue;
		(void) take_number(&p);
		word = FIND_ANY(p, signal_words);
		if (word == NULL || word > line_end)
			continue;
		p = strpbrk(p, "0123456789");
		if (p != NULL && p < line_end)
		{
			int64_t		number = take_number(&p);

			for (size_t i = 0; i < KA_LENGTH(signals); i++)
			{
				if (signals[i].number == number)
					return signals[i].symbol;
			}
		}
	}
	return NULL;
}

/* What a person types: "Bus error", "SIGBUS", "signal 7", without a PID. */
static const char *
find_plain_signal(const char *text)
{
	const char *p = strstr(text, "signal ");

	for (size_t i = 0; i < KA_LENGTH(signals); i++)
	{
		if (strstr(text, signals[i].symbol))
			return signals[i].symbol;
	}
	if (strstr(text, "Bus error") || strstr(text, "bus error"))
		return "SIGBUS";
	if (p != NULL)
	{
		int64_t		number;

		p += strlen("signal ");
		number = isdigit((unsigned char) *p) ? take_number(&p) : KA_UNKNOWN;
		for (size_t i = 0; i < KA_LENGTH(signals); i++)
		{
			if (signals[i].number == number)
				return signals[i].symbol;
		}
	}
	return NULL;
}

static bool
parse_request(const char *text, KaErrorText *error)
{
	const char *segment;

	*error = (KaErrorText) {.bytes = KA_UNKNOWN};

	if (strstr(text, "shmget(") || strstr(text, "SHMMAX") || strstr(text, "SHMALL") ||
		strstr(text, "could not create shared memory segment:"))
	{
		error->call = "shmget";
		error->bytes = shmget_size(text);
		error->error = FIND_PHRASE(text, errors);
		if (error->error == NULL)
			error->error = FIND_PHRASE(text, shmget_limits);
	}
	else if (strstr(text, "io_uring"))
	{
		error->call = "io_uring";
		error->error = FIND_PHRASE(text, errors);
	}
	else if ((segment = strstr(text, "/PostgreSQL.")) != NULL ||
			 (segment = strstr(text, "pg_dynshmem/mmap.")) != NULL)
	{
		error->call = "dsm";
		error->bytes = find_bytes(segment);
		error->error = FIND_PHRASE(text, errors);
	}
	else
	{
		bool		hint = strstr(text, "shared_buffers") && strstr(text, "max_connections") &&
			find_bytes(text) != KA_UNKNOWN;

		if (!hint && FIND_ANY(text, mmap_phrases) == NULL)
			return false;
		error->call = "mmap";
		error->bytes = find_bytes(text);
		error->error = FIND_PHRASE(text, errors);
		if (error->error == NULL && hint)
			error->error = "ENOMEM";	/* the server gives this hint for no other error */
	}
	return true;
}

bool
ka_error_parse(const char *text, KaErrorText *error)
{
	if (parse_request(text, error))
		return true;
	error->signal = find_signal(text);
	if (error->signal == NULL)
		error->signal = find_plain_signal(text);
	return error->signal != NULL;
}

/* Only a start maps the main segment or sets up rings; dynamic segments are for queries. */
const char *
ka_error_phase(const KaErrorText *error)
{
	if (error->call == NULL)
		return NULL;
	return strcmp(error->call, "dsm") == 0 ? "runtime" : "start";
}

/*
 * Logs
 */

/* A failure is one message: its detail and a hint of a few lines follow. */
#define MESSAGE_LINES 6

/* A fatal error ends a start: nothing but the shutdown comes after it. */
#define LAST_LINES 10

/* "2026-11-30 23:54:55.123 UTC" near the start of a line, in seconds; differences count, not the zone. */
static bool
line_time(const char *line, double *seconds)
{
	for (const char *p = line; *p != '\0' && *p != '\n' && p - line < 64; p++)
	{
		struct tm	tm = {0};
		double		fraction = 0;
		const char *rest;

		if (!isdigit((unsigned char) *p) || (rest = strptime(p, "%Y-%m-%d %H:%M:%S", &tm)) == NULL)
			continue;
		if (*rest == '.')
		{
			double		unit = 0.1;

			for (rest++; isdigit((unsigned char) *rest); rest++, unit /= 10)
				fraction += unit * (*rest - '0');
		}
		*seconds = (double) timegm(&tm) + fraction;
		return true;
	}
	return false;
}

static char *
take_lines(KaArena *arena, const char *from, int lines)
{
	const char *end = from;

	for (int i = 0; i < lines && *end != '\0'; i++)
	{
		end += strcspn(end, "\n");
		end += *end == '\n';
	}
	while (end > from && end[-1] == '\n')
		end--;
	return ka_printf(arena, "%.*s", (int) (end - from), from);
}

/* The banner of a start; the version text is not translated. */
static bool
is_start(const char *line)
{
	return strstr(line, "PostgreSQL ") && strstr(line, ", compiled by");
}

/* What the first line of a message leaves open, its detail and hint may tell. */
static void
complete(const char *message, KaErrorText *error)
{
	KaErrorText whole;

	if (!parse_request(message, &whole))
		return;
	error->call = whole.call;
	if (error->bytes == KA_UNKNOWN)
		error->bytes = whole.bytes;
	if (error->error == NULL)
		error->error = whole.error;
}

/* What a log has told about the server, up to some line. */
typedef enum ServerState
{
	STATE_UNKNOWN,				/* the tail begins after the start */
	STATE_STARTING,
	STATE_READY
} ServerState;

static const char *
failure_phase(const KaErrorText *error, ServerState state)
{
	const char *phase = ka_error_phase(error);

	if (phase != NULL && strcmp(phase, "start") == 0)
		return phase;
	if (state != STATE_UNKNOWN)
		return state == STATE_READY ? "runtime" : "start";
	return phase;
}

static const KaLogReport nothing = {.error = {.bytes = KA_UNKNOWN},.after_s = -1};

bool
ka_log_parse(KaArena *arena, const char *log, KaLogReport *report)
{
	ServerState state = STATE_UNKNOWN;
	bool		timed = false;	/* ready_at is known */
	double		ready_at = 0;
	int			belongs = 0;	/* lines that belong to the last failure */
	int64_t		line_number = 0,
				fatal_number = 0;
	const char *next;

	*report = nothing;
	for (const char *p = log; *p != '\0'; p = next)
	{
		char	   *line = take_lines(arena, p, 1);
		KaErrorText error;
		double		at;

		if (line == NULL)
			return false;
		next = p + strcspn(p, "\n");
		next += *next == '\n';
		line_number++;

		if (is_start(line))
		{
			state = STATE_STARTING;
			report->fatal = NULL;
		}
		else if (FIND_ANY(line, ready_phrases))
		{
			/* What kept it from starting is over; a crash is still of interest. */
			if (report->phase == NULL || strcmp(report->phase, "start") == 0)
				*report = nothing;
			report->recovered = report->message != NULL;
			report->fatal = NULL;
			state = STATE_READY;
			timed = line_time(line, &ready_at);
			belongs = 0;
		}
		else if (belongs > 0)
			belongs--;
		else if (parse_request(line, &error))
		{
			report->message = take_lines(arena, p, MESSAGE_LINES);
			if (report->message == NULL)
				return false;
			complete(report->message, &error);
			belongs = MESSAGE_LINES - 1;
			report->error = error;
			report->phase = failure_phase(&error, state);
			report->recovered = false;
			report->after_s = -1;
		}
		else if ((error.signal = find_signal(line)) != NULL)
		{
			report->message = line;
			report->error = error;
			report->phase = failure_phase(&error, state);
			report->recovered = false;
			report->after_s = state == STATE_READY && timed && line_time(line, &at) && at >= ready_at ?
				at - ready_at : -1;
		}
		else if (state != STATE_READY && FIND_ANY(line, fatal_words))
		{
			report->fatal = line;
			fatal_number = line_number;
		}
	}
	if (line_number - fatal_number > LAST_LINES)
		report->fatal = NULL;
	return true;
}
